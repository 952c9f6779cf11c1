package memory_test

import (
	"fmt"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/llms"
)

func TestAddItemReturnsTheItemAsWritten(t *testing.T) {
	client := dial(t)
	added := &memory.Item{Content: everyPart(), TTL: time.Hour, Embedding: []float32{0, 1}}
	written := ok[*memory.Item](t)(client.AddItem(soon(t), added))
	equal(t, written.Content, everyPart())
	if written.ID == "" || written.Revision != 1 || written.ExpireTime.Before(time.Now()) || written.TTL != 0 {
		t.Fatalf("%+v", written)
	}
	equal(t, ok[*memory.Item](t)(client.Get(soon(t), written.ID)), written)
	own := ok[*memory.Item](t)(client.AddItem(soon(t), &memory.Item{Content: "a", Embedding: []float32{1, 0}}))
	text := ok[*memory.Item](t)(client.AddItem(soon(t), &memory.Item{Content: "b"}))
	equal(t, len(own.Degraded), 0)
	equal(t, text.Degraded[0].Reason, memory.DegradedForeignVectors)
	equal(t, own.Embedding, []float32(nil))
	own = ok[*memory.Item](t)(client.Get(soon(t), own.ID, memory.WithEmbeddings()))
	equal(t, own.Embedding, []float32{1, 0})
}

func TestARequestIDIsAppliedOnce(t *testing.T) {
	client := dial(t)
	once := memory.WithRequestID("request-1")
	first := ok[*memory.Item](t)(client.AddItem(soon(t), &memory.Item{Content: "a"}, once))
	again := ok[*memory.Item](t)(client.AddItem(soon(t), &memory.Item{Content: "a"}, once))
	equal(t, again.ID, first.ID)
	_, err := client.AddItem(soon(t), &memory.Item{Content: "b"}, once)
	equal(t, wantError(t, err, memory.ErrFailedPrecondition).Reason, memory.ReasonRequestIDReused)
	equal(t, texts(retrieve(t, client)), "a")
}

func TestABatchIsWrittenWholeOrNotAtAll(t *testing.T) {
	client := dial(t)
	written := ok[[]*memory.Item](t)(client.BatchAdd(soon(t), []*memory.Item{{Content: "a"}, {ID: "b", Content: "b"}}))
	equal(t, []any{written[0].Content, written[1].ID}, []any{"a", memory.MemoryItemId("b")})
	_, err := client.BatchAdd(soon(t), []*memory.Item{{Content: "c"}, {ID: "b", Content: "d"}})
	wantError(t, err, memory.ErrAlreadyExists)
	_, err = client.BatchAdd(soon(t), []*memory.Item{{Content: "c"}, {Content: 7}})
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "items[1].content")
	_, err = client.BatchAdd(soon(t), nil)
	wantError(t, err, memory.ErrInvalidArgument)
	equal(t, texts(retrieve(t, client)), "a b")
}

func TestAQueryFindsTheBestFirst(t *testing.T) {
	client := dial(t)
	addTexts(t, client, "the cat sleeps", "tea with lemon and honey", "green tea")
	found := ok[*memory.Results](t)(client.RetrieveResults(soon(t),
		memory.WithQuery("tea"), memory.WithMode(memory.RetrieveLexical), memory.WithExplain()))
	equal(t, len(found.Results), 2)
	equal(t, found.Revision, int64(3))
	best := found.Results[0]
	equal(t, best.Item.Content, "green tea")
	equal(t, []any{best.Explanation[0].Channel, best.Explanation[0].Contribution}, []any{"lexical", best.Score})
	if best.Score <= found.Results[1].Score || found.Results[1].Score <= 0 {
		t.Fatalf("%+v", found.Results)
	}
	least := memory.WithMinScore(best.Score)
	few := ok[*memory.Results](t)(client.RetrieveResults(soon(t),
		memory.WithQuery("tea"), memory.WithMode(memory.RetrieveLexical), least))
	equal(t, len(few.Results), 1)
	_, err := client.Retrieve(soon(t), memory.WithMode("psychic"))
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "options.mode")
}

func TestWeightsDecideWhatIsBest(t *testing.T) {
	client := dial(t)
	add(t, client,
		&memory.Item{ID: "weighty", Content: "a heron", Importance: memory.Ptr(1.0), CreateTime: noon.AddDate(0, 0, -14)},
		&memory.Item{ID: "recent", Content: "a heron", Importance: memory.Ptr(0.0), CreateTime: noon.AddDate(0, 0, -7)},
	)
	weighed := func(weights memory.ScoreWeights) []memory.Result {
		return ok[*memory.Results](t)(client.RetrieveResults(soon(t),
			memory.WithQuery("heron"), memory.WithWeights(weights), memory.WithNow(noon), memory.WithExplain())).Results
	}
	best := weighed(memory.ScoreWeights{Importance: 1})
	equal(t, []memory.MemoryItemId{best[0].Item.ID, best[1].Item.ID}, []memory.MemoryItemId{"weighty", "recent"})
	equal(t, best[0].Item.Importance, memory.Ptr(1.0))
	aged := weighed(memory.ScoreWeights{Lexical: memory.Ptr(0.0), Vector: memory.Ptr(0.0), Recency: 1})
	equal(t, []float64{aged[0].Score, aged[1].Score}, []float64{0.5, 0.25})
	aged = weighed(memory.ScoreWeights{
		Lexical: memory.Ptr(0.0), Vector: memory.Ptr(0.0), Recency: 1, RecencyHalfLife: 14 * 24 * time.Hour,
	})
	equal(t, aged[1].Score, 0.5)
	_, err := client.Retrieve(soon(t), memory.WithQuery("x"), memory.WithWeights(memory.ScoreWeights{Usage: -1}))
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "options.weights.usage")
}

func TestNeighboursComeWithAResultAndCountInTheBudget(t *testing.T) {
	client := dial(t)
	for _, text := range []string{"We sat by the river", "A heron came", "It flew off"} {
		add(t, client, &memory.Item{Content: text, SessionID: "walk"})
	}
	options := []memory.MemoryRetrieveOption{
		memory.WithQuery("heron"), memory.WithMode(memory.RetrieveLexical), memory.WithMaxLimit(1), memory.WithMaxTokens(50),
	}
	alone := ok[*memory.Results](t)(client.RetrieveResults(soon(t), options...))
	together := ok[*memory.Results](t)(client.RetrieveResults(soon(t), append(options, memory.WithContextWindow(1))...))
	found := together.Results[0]
	equal(t, []any{found.Before[0].Content, found.Item.Content, found.After[0].Content},
		[]any{"We sat by the river", "A heron came", "It flew off"})
	if alone.TokenCount == 0 || together.TokenCount <= alone.TokenCount || together.TokenCount > 50 {
		t.Fatal(alone.TokenCount, together.TokenCount)
	}
	whole := ok[*memory.Results](t)(client.RetrieveResults(soon(t), memory.WithMaxTokens(50)))
	paged := ok[*memory.Results](t)(client.RetrieveResults(soon(t), memory.WithMaxTokens(50), memory.WithPageSize(1)))
	equal(t, []int{len(paged.Results), paged.TokenCount}, []int{3, whole.TokenCount})
}

func TestWhatWasUsedIsCountedWhereThatIsAskedFor(t *testing.T) {
	client := dial(t)
	add(t, client, &memory.Item{ID: "used", Content: "a heron", Labels: map[string]string{"it": "yes"}},
		&memory.Item{ID: "unused", Content: "a heron"})
	one := memory.WithLabels(map[string]string{"it": "yes"})
	byUse := memory.WithWeights(memory.ScoreWeights{Lexical: memory.Ptr(0.0), Vector: memory.Ptr(0.0), Usage: 1})
	retrieve(t, client, memory.WithQuery("heron"), one)
	for _, want := range []float64{0, 0.25} {
		found := ok[*memory.Results](t)(client.RetrieveResults(soon(t), memory.WithQuery("heron"), byUse, one))
		equal(t, found.Results[0].Score, want)
		retrieve(t, client, memory.WithQuery("heron"), one, memory.WithRecordUsage())
	}
	found := ok[*memory.Results](t)(client.RetrieveResults(soon(t), memory.WithQuery("heron"), memory.WithRerank()))
	equal(t, found.Degraded[0].Reason, memory.DegradedNoReranker)
}

func TestAVectorFindsTheNearest(t *testing.T) {
	client := dial(t)
	add(t, client,
		&memory.Item{Content: "east", Embedding: []float32{1, 0}},
		&memory.Item{Content: "north", Embedding: []float32{0, 1}},
	)
	found := ok[*memory.Results](t)(client.RetrieveResults(soon(t),
		memory.WithQueryEmbedding([]float32{0.1, 1}), memory.WithMaxLimit(1), memory.WithEmbeddings()))
	equal(t, found.Results[0].Item.Content, "north")
	equal(t, found.Results[0].Item.Embedding, []float32{0, 1})
	words := ok[*memory.Results](t)(client.RetrieveResults(soon(t), memory.WithQuery("east")))
	equal(t, words.Degraded[0].Reason, memory.DegradedForeignVectors)
	equal(t, words.Results[0].Item.Content, "east")
}

func TestThousandsOfItemsComePageByPage(t *testing.T) {
	const count = 2500
	client := dial(t)
	for begin := 0; begin < count; begin += 500 {
		var batch []*memory.Item
		for number := begin; number < begin+500; number++ {
			batch = append(batch, &memory.Item{Content: fmt.Sprintf("item %d", number), Embedding: []float32{1}})
		}
		ok[[]*memory.Item](t)(client.BatchAdd(soon(t), batch))
	}
	for _, options := range [][]memory.MemoryRetrieveOption{nil, {memory.WithNoLimit(), memory.WithPageSize(999)}} {
		for number, item := range retrieve(t, client, options...) {
			equal(t, item.GetContent(), fmt.Sprintf("item %d", number))
		}
		equal(t, len(retrieve(t, client, options...)), count)
	}
	newest := retrieve(t, client, memory.WithMaxLimit(2100), memory.WithPageSize(1000))
	equal(t, []any{len(newest), newest[0].GetContent()}, []any{2100, "item 400"})
	number := 0
	for item, err := range client.ListItems(soon(t), memory.WithPageSize(700)) {
		if err != nil {
			t.Fatal(err)
		}
		equal(t, item.Content, fmt.Sprintf("item %d", number))
		number++
	}
	equal(t, number, count)
	for item, err := range client.ListItems(soon(t), memory.WithNewestFirst()) {
		if err != nil || item.Content != "item 2499" {
			t.Fatal(item, err)
		}
		break
	}
}

func TestListsAreFiltered(t *testing.T) {
	client := dial(t)
	filtersLeaveOut(t, client)
	listed := ""
	for item, err := range client.ListItems(soon(t), memory.WithSession("s"),
		memory.WithLabels(map[string]string{"c": "red"}), memory.WithKinds(memory.KindPlain),
		memory.WithTimeRange(noon.Add(time.Microsecond), time.Time{})) {
		if err != nil {
			t.Fatal(err)
		}
		listed += item.Content.(string)
	}
	equal(t, listed, "d")
	for item, err := range client.ListItems(soon(t), memory.WithFilter(`labels.c = "red" AND NOT session_id = "s"`)) {
		if err != nil {
			t.Fatal(err)
		}
		equal(t, item.Content, "c")
	}
	equal(t, texts(retrieve(t, client, memory.WithFilter("labels.c = blue OR labels.n = none"))), "b")
	err := firstError(client.ListItems(soon(t), memory.WithFilter("labels.c = ")))
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Metadata["column"], "12")
	err = firstError(client.Namespace("//").ListItems(soon(t)))
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "namespace")
}

func TestUpdateChangesWhatIsSetOrNamed(t *testing.T) {
	client := dial(t)
	added := ok[*memory.Item](t)(client.AddItem(soon(t), &memory.Item{
		Content: "Ada likes tea", SessionID: "s", Labels: map[string]string{"a": "b"}, ExpireTime: noon.AddDate(50, 0, 0),
	}))
	updated := ok[*memory.Item](t)(client.Update(soon(t), &memory.Item{ID: added.ID, Content: "Ada likes coffee"}))
	equal(t, []any{updated.Content, updated.SessionID, updated.Labels}, []any{"Ada likes coffee", "s", added.Labels})
	updated = ok[*memory.Item](t)(client.Update(soon(t), &memory.Item{ID: added.ID},
		memory.WithFields("labels", "expire_time"), memory.WithExpectedRevision(updated.Revision)))
	equal(t, []any{updated.Content, len(updated.Labels), updated.ExpireTime}, []any{"Ada likes coffee", 0, time.Time{}})
	_, err := client.Update(soon(t), &memory.Item{ID: added.ID, SessionID: "t"}, memory.WithExpectedRevision(1))
	failure := wantError(t, err, memory.ErrConflict)
	equal(t, failure.Reason, memory.ReasonRevisionMismatch)
	equal(t, failure.Metadata["current_revision"], fmt.Sprint(updated.Revision))
	_, err = client.Update(soon(t), &memory.Item{ID: added.ID}, memory.WithFields("colour"))
	wantError(t, err, memory.ErrInvalidArgument)
}

func TestDeleteRemovesAnItem(t *testing.T) {
	client := dial(t)
	added := ok[*memory.Item](t)(client.AddItem(soon(t), &memory.Item{Content: llms.NewUserMessage("x")}))
	_, err := client.Delete(soon(t), added.ID, memory.WithExpectedRevision(7))
	wantError(t, err, memory.ErrConflict)
	equal(t, ok[int64](t)(client.Delete(soon(t), added.ID, memory.WithExpectedRevision(1))), int64(2))
	_, err = client.Delete(soon(t), added.ID)
	wantError(t, err, memory.ErrNotFound)
}

func TestResetNamespaceTellsWhatWasRemoved(t *testing.T) {
	client := dial(t)
	addTexts(t, client, "a", "b")
	ok[*memory.StateEntry](t)(client.SaveState(soon(t), "k", 1))
	removed := ok[memory.Removed](t)(client.ResetNamespace(soon(t)))
	equal(t, removed, memory.Removed{ItemCount: 2, StateCount: 1, Revision: 4})
}
