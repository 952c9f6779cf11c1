package memory_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/llms"
)

// memories are the implementations that must behave alike.
var memories = []struct {
	name  string
	empty func(t *testing.T) memory.Memory
}{
	{"Client", func(t *testing.T) memory.Memory { return dial(t) }},
	{"InMemoryMemory", func(*testing.T) memory.Memory { return memory.NewInMemoryMemory() }},
}

func TestMemory(t *testing.T) {
	behaviours := []struct {
		name  string
		check func(t *testing.T, kept memory.Memory)
	}{
		{"a message returns with all its parts", messageReturns},
		{"a tool's result returns", toolResultReturns},
		{"an item returns with all its fields", itemReturns},
		{"unusual values return", unusualValuesReturn},
		{"items of another implementation are kept", foreignItemsAreKept},
		{"the newest are returned, the oldest of them first", newestAreReturned},
		{"filters leave out what does not match", filtersLeaveOut},
		{"an id is taken once", idIsTakenOnce},
		{"what cannot be kept is refused", badItemsAreRefused},
		{"an item expires", itemExpires},
		{"what is kept is a copy", copiesAreKept},
		{"a reset empties", resetEmpties},
		{"a context that has ended is honoured", endedContextIsHonoured},
		{"what cannot be retrieved is refused", badOptionsAreRefused},
		{"many may add at once", manyAdd},
		{"messages are taken out", messagesAreTakenOut},
	}
	for _, implementation := range memories {
		t.Run(implementation.name, func(t *testing.T) {
			for _, behaviour := range behaviours {
				t.Run(behaviour.name, func(t *testing.T) { behaviour.check(t, implementation.empty(t)) })
			}
		})
	}
}

func messageReturns(t *testing.T, kept memory.Memory) {
	added := memory.NewChatMessageMemoryItem(everyPart())
	add(t, kept, added)
	item := onlyItem(t, kept)
	equal(t, item.GetContent(), everyPart())
	equal(t, item.GetId(), added.GetId())
	equal(t, item.GetCreatedAt(), noon)
	message, isMessage := item.AsMessage()
	equal(t, []any{message, isMessage}, []any{everyPart(), true})
}

func toolResultReturns(t *testing.T, kept memory.Memory) {
	result := &llms.ToolCallResult{ToolCallId: "call-1", Name: "trains", Result: []any{"12:04", 2.5}}
	added := memory.NewToolCallResultMemoryItem(result)
	add(t, kept, added)
	item := onlyItem(t, kept)
	equal(t, item.GetContent(), result)
	equal(t, item.GetId(), added.GetId())
	equal(t, item.GetCreatedAt(), added.GetCreatedAt())
	message, isMessage := item.AsMessage()
	equal(t, isMessage, true)
	equal(t, message.Creator.Role, llms.RoleTool)
	equal(t, message.Parts, []llms.Part{result})
	equal(t, message.Timestamp, added.GetCreatedAt())
}

func itemReturns(t *testing.T, kept memory.Memory) {
	added := &memory.Item{
		ID:         "item-1",
		SessionID:  "trip",
		Content:    "Ada likes tea",
		CreateTime: noon,
		ExpireTime: noon.AddDate(100, 0, 0),
		Labels:     map[string]string{"topic": "drinks", "empty": ""},
		Metadata:   map[string]any{"source": "chat", "score": 0.5},
		Embedding:  []float32{0.5, -1, 2},
		Importance: pointer(0.0),
	}
	add(t, kept, added)
	item := onlyItem(t, kept).(*memory.Item)
	if item.Revision != 1 || item.UpdateTime.IsZero() || item.Kind != memory.KindPlain {
		t.Fatalf("%+v", item)
	}
	want := *added
	want.Embedding, want.Revision, want.UpdateTime, want.Kind = nil, 1, item.UpdateTime, memory.KindPlain
	equal(t, *item, want)
	equal(t, retrieve(t, kept, memory.WithEmbeddings())[0].(*memory.Item).Embedding, added.Embedding)
}

func unusualValuesReturn(t *testing.T, kept memory.Memory) {
	data := map[string]any{
		"":        "an empty key",
		"integer": 9007199254740992.0,
		"large":   "9007199254740993",
		"tiny":    5e-324,
		"negated": -1e300,
		"empty":   map[string]any{},
		"list":    []any{},
		"null":    nil,
		"文字":      "ﬀ\u202e\r\n\t",
	}
	add(t, kept, &memory.Item{Content: data, CreateTime: noon.Add(789 * time.Nanosecond)})
	item := onlyItem(t, kept)
	equal(t, item.GetContent(), data)
	equal(t, item.GetCreatedAt(), noon)
	if item.GetId() == "" {
		t.Fatal("the item was given no id")
	}
	add(t, kept, &memory.Item{Content: map[string]any{"count": 3, "tags": []string{"a"}, "at": noon}})
	equal(t, retrieve(t, kept)[1].GetContent(), map[string]any{
		"count": 3.0, "tags": []any{"a"}, "at": "2026-05-17T12:00:00.123456Z",
	})
}

// note is a program's own MemoryItem.
type note struct {
	content any
	message *llms.Message
}

func (n note) GetId() memory.MemoryItemId { return "" }
func (n note) GetContent() any            { return n.content }
func (n note) GetCreatedAt() time.Time    { return noon }
func (n note) AsMessage() (*llms.Message, bool) {
	return n.message, n.message != nil
}

func foreignItemsAreKept(t *testing.T, kept memory.Memory) {
	type fact struct {
		Who string `json:"who"`
	}
	add(t, kept, note{content: "a text"}, note{content: fact{"Ada"}}, note{"shown", everyPart()})
	items := retrieve(t, kept)
	equal(t, items[0].GetContent(), "a text")
	equal(t, items[0].GetCreatedAt(), noon)
	equal(t, items[1].GetContent(), map[string]any{"who": "Ada"})
	equal(t, items[2].GetContent(), everyPart())
}

func newestAreReturned(t *testing.T, kept memory.Memory) {
	addTexts(t, kept, "a", "b", "c", "d")
	for want, options := range map[string][]memory.MemoryRetrieveOption{
		"a b c d": nil,
		"c d":     {memory.WithMaxLimit(2)},
		"":        {memory.WithMaxLimit(0)},
		"d":       {memory.WithNoLimit(), memory.WithMaxLimit(1)},
	} {
		equal(t, texts(retrieve(t, kept, options...)), want)
	}
	equal(t, texts(retrieve(t, kept, memory.WithMaxLimit(9))), "a b c d")
	equal(t, texts(retrieve(t, kept, memory.WithNoLimit())), "a b c d")
	equal(t, texts(retrieve(t, kept, memory.WithNoLimit(), memory.WithPageSize(1))), "a b c d")
	equal(t, texts(retrieve(t, kept, memory.WithContextWindow(20), memory.WithRecordUsage(), memory.WithNow(noon))), "a b c d")
}

func badOptionsAreRefused(t *testing.T, kept memory.Memory) {
	for field, option := range map[string]memory.MemoryRetrieveOption{
		"options.limit":          memory.WithMaxLimit(-2),
		"options.page_size":      memory.WithPageSize(-1),
		"options.context_window": memory.WithContextWindow(-1),
		"options.end_time":       memory.WithTimeRange(noon, noon.Add(-time.Microsecond)),
		"options.kinds":          memory.WithKinds("toy"),
		"options.mode":           memory.WithMode("psychic"),
	} {
		_, err := kept.Retrieve(soon(t), option)
		equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, field)
	}
	for field, option := range map[string]memory.MemoryRetrieveOption{
		"options.max_tokens": memory.WithMaxTokens(0),
		"options.min_score":  memory.WithMinScore(0.5),
		"options.mode":       memory.WithMode(memory.RetrieveVector),
		"options.weights":    memory.WithWeights(memory.ScoreWeights{Recency: 1}),
		"options.rerank":     memory.WithRerank(),
	} {
		_, err := kept.Retrieve(soon(t), option)
		equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, field)
	}
}

func filtersLeaveOut(t *testing.T, kept memory.Memory) {
	red, blue := map[string]string{"c": "red", "n": "1"}, map[string]string{"c": "blue"}
	for index, item := range []memory.Item{
		{Content: "a", SessionID: "s", Labels: red},
		{Content: "b", SessionID: "s", Labels: blue},
		{Content: "c", Labels: red},
		{Content: "d", SessionID: "s", Labels: red},
	} {
		item.CreateTime = noon.Add(time.Duration(index) * time.Microsecond)
		add(t, kept, &item)
	}
	for _, wanted := range []struct {
		texts   string
		options []memory.MemoryRetrieveOption
	}{
		{"a b d", []memory.MemoryRetrieveOption{memory.WithSession("s")}},
		{"b d", []memory.MemoryRetrieveOption{memory.WithSession("s"), memory.WithMaxLimit(2)}},
		{"a c d", []memory.MemoryRetrieveOption{memory.WithLabels(red)}},
		{"b", []memory.MemoryRetrieveOption{memory.WithLabels(blue)}},
		{"", []memory.MemoryRetrieveOption{memory.WithLabels(blue), memory.WithLabels(map[string]string{"n": "1"})}},
		{"b c", []memory.MemoryRetrieveOption{
			memory.WithTimeRange(noon.Add(time.Microsecond), noon.Add(3*time.Microsecond)),
		}},
		{"c d", []memory.MemoryRetrieveOption{memory.WithTimeRange(noon.Add(2*time.Microsecond), time.Time{})}},
		{"a d", []memory.MemoryRetrieveOption{memory.WithSession("s"), memory.WithLabels(red)}},
		{"a b c d", []memory.MemoryRetrieveOption{memory.WithKinds(memory.KindPlain, memory.KindMessage)}},
		{"", []memory.MemoryRetrieveOption{memory.WithKinds(memory.KindMessage)}},
	} {
		equal(t, texts(retrieve(t, kept, wanted.options...)), wanted.texts)
	}
}

func idIsTakenOnce(t *testing.T, kept memory.Memory) {
	add(t, kept, &memory.Item{ID: "once", Content: "first"})
	err := kept.Add(soon(t), &memory.Item{ID: "once", Content: "second"})
	failure := wantError(t, err, memory.ErrAlreadyExists)
	equal(t, failure.Reason, memory.ReasonItemAlreadyExists)
	equal(t, failure.Metadata["id"], "once")
	equal(t, texts(retrieve(t, kept)), "first")
}

func badItemsAreRefused(t *testing.T, kept memory.Memory) {
	say := func(parts ...llms.Part) *llms.Message { return llms.NewMessage(llms.RoleUser, parts...) }
	var nothing *memory.Item
	for _, refused := range []struct {
		field string
		item  memory.MemoryItem
	}{
		{"item", nil},
		{"item", nothing},
		{"item.content", &memory.Item{}},
		{"item.content", &memory.Item{Content: 7}},
		{"item.content", note{content: []int{1}}},
		{"item.content", note{}},
		{"item.text", &memory.Item{Content: ""}},
		{"item.chat_message.role", &memory.Item{Content: llms.NewMessage("")}},
		{"item.chat_message.role", &memory.Item{Content: llms.NewMessage("bard")}},
		{"item.chat_message.parts[1].part", &memory.Item{Content: say(&llms.TextPart{}, nil)}},
		{"item.chat_message.parts[0].part", &memory.Item{Content: say((*llms.ToolCall)(nil))}},
		{"item.chat_message.parts[0].data.a[1]", &memory.Item{
			Content: say(&llms.DataPart{Data: map[string]any{"a": []any{1, 1<<53 + 1}}}),
		}},
		{"item.data.n", &memory.Item{Content: map[string]any{"n": uint64(1<<63 + 1)}}},
		{"item.data.n", &memory.Item{Content: map[string]any{"n": -1<<53 - 1}}},
		{"item.data.f", &memory.Item{Content: map[string]any{"f": func() {}}}},
		{"item.expire_time", &memory.Item{Content: "x", ExpireTime: noon.AddDate(-50, 0, 0)}},
		{"item.importance", &memory.Item{Content: "x", Importance: pointer(1.01)}},
		{"item.importance", &memory.Item{Content: "x", Importance: pointer(math.NaN())}},
		{"item.ttl", &memory.Item{Content: "x", TTL: -time.Second}},
		{"item.ttl", &memory.Item{Content: "x", TTL: time.Hour, ExpireTime: noon.AddDate(50, 0, 0)}},
	} {
		failure := wantError(t, kept.Add(soon(t), refused.item), memory.ErrInvalidArgument)
		if failure.Field != refused.field || failure.Reason != memory.ReasonInvalidField {
			t.Errorf("%#v: field %q, reason %q", refused.item, failure.Field, failure.Reason)
		}
	}
	equal(t, len(retrieve(t, kept)), 0)
}

func itemExpires(t *testing.T, kept memory.Memory) {
	add(t, kept, &memory.Item{Content: "stays"}, &memory.Item{Content: "goes", TTL: 300 * time.Millisecond})
	equal(t, texts(retrieve(t, kept)), "stays goes")
	for ctx := soon(t); texts(ok[[]memory.MemoryItem](t)(kept.Retrieve(ctx))) != "stays"; {
		runtime.Gosched() // Until the context ends, which fails the test.
	}
	add(t, kept, &memory.Item{Content: "later"})
	equal(t, texts(retrieve(t, kept, memory.WithMaxLimit(2))), "stays later")
}

func copiesAreKept(t *testing.T, kept memory.Memory) {
	message := everyPart()
	labels := map[string]string{"a": "b"}
	add(t, kept, &memory.Item{Content: message, Labels: labels})
	message.Parts[0].(*llms.TextPart).Text = "changed"
	message.Parts[3].(*llms.BinaryPart).Content[0] = 7
	labels["a"] = "changed"
	equal(t, onlyItem(t, kept).GetContent(), everyPart())
	returned := onlyItem(t, kept).(*memory.Item)
	returned.Labels["a"] = "changed"
	returned.Content.(*llms.Message).Parts[3].(*llms.BinaryPart).Content[0] = 7
	equal(t, onlyItem(t, kept).(*memory.Item).Labels["a"], "b")
	equal(t, onlyItem(t, kept).GetContent(), everyPart())
}

func resetEmpties(t *testing.T, kept memory.Memory) {
	add(t, kept, &memory.Item{ID: "x", Content: "before"})
	if err := kept.Reset(); err != nil {
		t.Fatal(err)
	}
	equal(t, len(retrieve(t, kept)), 0)
	add(t, kept, &memory.Item{ID: "x", Content: "after"})
	equal(t, texts(retrieve(t, kept)), "after")
}

func endedContextIsHonoured(t *testing.T, kept memory.Memory) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	wantError(t, kept.Add(ctx, &memory.Item{Content: "x"}), context.Canceled)
	_, err := kept.Retrieve(ctx)
	wantError(t, err, context.Canceled)
	ctx, cancel = context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	err = kept.Add(ctx, &memory.Item{Content: "x"})
	wantError(t, err, context.DeadlineExceeded)
	wantError(t, err, memory.ErrDeadlineExceeded)
	equal(t, len(retrieve(t, kept)), 0)
}

func manyAdd(t *testing.T, kept memory.Memory) {
	const writers, each = 8, 20
	var group sync.WaitGroup
	for writer := range writers {
		group.Go(func() {
			for number := range each {
				item := &memory.Item{Content: fmt.Sprintf("%d-%02d", writer, number)}
				if err := kept.Add(context.Background(), item); err != nil {
					t.Error(err)
				}
				if _, err := kept.Retrieve(context.Background(), memory.WithMaxLimit(1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	found := strings.Fields(texts(retrieve(t, kept)))
	equal(t, len(found), writers*each)
	slices.SortStableFunc(found, func(a, b string) int { return strings.Compare(a[:1], b[:1]) })
	equal(t, slices.IsSorted(found), true) // What one writer added is in its order.
}

func messagesAreTakenOut(t *testing.T, kept memory.Memory) {
	result := &llms.ToolCallResult{Name: "clock", Result: "12:04"}
	add(t, kept,
		memory.NewChatMessageMemoryItem(llms.NewSystemMessage("Be brief")),
		&memory.Item{Content: "not a message"},
		memory.NewChatMessageMemoryItem(llms.NewUserMessage("What time is it?")),
		memory.NewChatMessageMemoryItem(llms.NewAssistantMessage("", &llms.ToolCall{Name: "clock"})),
		memory.NewToolCallResultMemoryItem(result),
	)
	var roles []llms.Role
	for _, message := range memory.AsMessages(retrieve(t, kept)) {
		roles = append(roles, message.Creator.Role)
	}
	equal(t, roles, []llms.Role{llms.RoleSystem, llms.RoleUser, llms.RoleAssistant, llms.RoleTool})
	equal(t, memory.AsMessages(retrieve(t, kept))[1].Text(), "What time is it?")
}

func TestSearchesFiltersAndBudgetsNeedAServer(t *testing.T) {
	kept := memory.NewInMemoryMemory()
	for _, refused := range []struct {
		feature string
		option  memory.MemoryRetrieveOption
	}{
		{"query", memory.WithQuery("tea")},
		{"query", memory.WithQueryEmbedding([]float32{1})},
		{"filter", memory.WithFilter("kind = plain")},
		{"max_tokens", memory.WithMaxTokens(100)},
	} {
		_, err := kept.Retrieve(soon(t), refused.option)
		failure := wantError(t, err, memory.ErrUnsupported)
		equal(t, failure.Reason, memory.ReasonUnsupported)
		equal(t, failure.Metadata["feature"], refused.feature)
	}
}
