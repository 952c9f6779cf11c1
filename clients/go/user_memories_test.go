package memory_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/llms"
)

const lasting = "A lasting preference of the user"

// saveFact saves a preference unchanged, by rules.
func saveFact(t *testing.T, client *memory.Client, content string) *memory.SavedMemory {
	t.Helper()
	options := &memory.SaveMemoryOptions{KeepWording: true, DecideBy: memory.DecidedByRules}
	return ok[*memory.SavedMemory](t)(
		client.SaveMemory(soon(t), content, memory.CategoryPreference, lasting, options))
}

func contents(facts []*memory.UserMemory) []string {
	var texts []string
	for _, fact := range facts {
		texts = append(texts, fact.Content)
	}
	return texts
}

func listFacts(t *testing.T, client *memory.Client, options *memory.ListMemoriesOptions) []*memory.UserMemory {
	t.Helper()
	var facts []*memory.UserMemory
	for fact, err := range client.ListMemories(soon(t), options) {
		if err != nil {
			t.Fatal(err)
		}
		facts = append(facts, fact)
	}
	return facts
}

func TestSaveMemoryKeepsAllThatIsSaid(t *testing.T) {
	client := dial(t)
	source := memory.MemorySource{
		SessionID: "s1", ItemIDs: []string{"i1", "i2"}, Quote: "call me Ada", Actor: "concierge",
	}
	saved := ok[*memory.SavedMemory](t)(client.SaveMemory(
		soon(t), "My name is Ada Lovelace", memory.CategoryIdentity, "Who the user is, for every greeting",
		&memory.SaveMemoryOptions{
			Source:          &source,
			ExplicitRequest: true,
			OnContradiction: memory.ContradictionKeepsBoth,
			ValidFromTime:   noon,
			TTL:             time.Hour,
			Labels:          map[string]string{"topic": "names"},
			Metadata:        map[string]any{"form": map[string]any{"line": 3.0}},
			DecideBy:        memory.DecidedByRules,
		},
	))
	if saved.Outcome != memory.OutcomeSaved || saved.DecidedBy != memory.DecidedByRules || saved.Existing != nil {
		t.Errorf("the outcome is %+v", saved)
	}
	fact := saved.Memory
	if saved.RephrasedBy != memory.DecidedByRules || fact.OriginalContent != "My name is Ada Lovelace" {
		t.Errorf("%q was put into %q by %q", fact.OriginalContent, fact.Content, saved.RephrasedBy)
	}
	source.Origin = memory.OriginSaved
	if !reflect.DeepEqual(fact.Source, source) {
		t.Errorf("the source is %+v, not %+v", fact.Source, source)
	}
	if fact.Category != memory.CategoryIdentity || fact.Status != memory.StatusActive || fact.Version != 1 {
		t.Errorf("the fact is %+v", fact)
	}
	if !fact.ValidFromTime.Equal(noon) || !fact.ValidUntilTime.IsZero() || fact.ExpireTime.Before(time.Now()) {
		t.Errorf("the times are %v, %v, %v", fact.ValidFromTime, fact.ValidUntilTime, fact.ExpireTime)
	}
	if !reflect.DeepEqual(fact.Metadata, map[string]any{"form": map[string]any{"line": 3.0}}) || fact.Labels["topic"] != "names" {
		t.Errorf("beside it are %v and %v", fact.Metadata, fact.Labels)
	}
	boosts := fact.Importance.Boosts
	if fact.Importance.Base != 10 || len(boosts) == 0 || boosts[0].Name != "explicit_request" || boosts[0].Amount <= 0 {
		t.Errorf("the importance is %+v", fact.Importance)
	}
}

func TestSaveMemoryKnowsWhatItKnows(t *testing.T) {
	client := dial(t)
	first := saveFact(t, client, "User lives in Lisbon")
	again := saveFact(t, client, "User lives in Lisbon")
	if again.Outcome != memory.OutcomeDuplicate || again.Memory != nil || again.Existing.ID != first.Memory.ID {
		t.Errorf("the same fact is %+v", again)
	}
	if again.Similarity == nil || *again.Similarity < again.DuplicateThreshold || again.Message == "" {
		t.Errorf("it is told with %+v", again)
	}
	refused := ok[*memory.SavedMemory](t)(client.SaveMemory(
		soon(t), "User lives in Porto", memory.CategoryPreference, lasting,
		&memory.SaveMemoryOptions{OnContradiction: memory.ContradictionRefused, KeepWording: true},
	))
	if refused.Outcome != memory.OutcomeContradiction || refused.Memory != nil {
		t.Errorf("what contradicts is %+v", refused)
	}
	ended := saveFact(t, client, "User lives in Porto")
	if ended.Outcome != memory.OutcomeSuperseded || len(ended.Superseded) != 1 {
		t.Fatalf("what contradicts is %+v", ended)
	}
	if old := ended.Superseded[0]; old.Status != memory.StatusSuperseded || old.SupersededBy != ended.Memory.ID {
		t.Errorf("the old fact is %+v", old)
	}
	if held := listFacts(t, client, nil); len(held) != 1 || held[0].ID != ended.Memory.ID {
		t.Errorf("there holds %v", contents(held))
	}
	if all := listFacts(t, client, &memory.ListMemoriesOptions{IncludeHistory: true}); len(all) != 2 {
		t.Errorf("the history is %v", contents(all))
	}
}

func TestSaveMemoryIsAppliedOnce(t *testing.T) {
	client := dial(t)
	save := func(content string) (*memory.SavedMemory, error) {
		return client.SaveMemory(
			soon(t), content, memory.CategoryProject, lasting, nil, memory.WithRequestID("once"))
	}
	first := ok[*memory.SavedMemory](t)(save("User builds a boat in the yard"))
	again := ok[*memory.SavedMemory](t)(save("User builds a boat in the yard"))
	if again.Outcome != memory.OutcomeSaved || again.Memory.ID != first.Memory.ID {
		t.Errorf("the second time it is %+v", again)
	}
	_, err := save("User builds a shed in the yard")
	if failure := wantError(t, err, memory.ErrFailedPrecondition); failure.Reason != memory.ReasonRequestIDReused {
		t.Errorf("the reason is %s", failure.Reason)
	}
}

func TestMemoriesRefuseWhatIsWrong(t *testing.T) {
	client := dial(t)
	_, err := client.SaveMemory(soon(t), "short", memory.CategoryContext, lasting, nil)
	if failure := wantError(t, err, memory.ErrInvalidArgument); failure.Field != "content" {
		t.Errorf("the field is %q", failure.Field)
	}
	_, err = client.SaveMemory(soon(t), "User likes apple pie", "pastry", lasting, nil)
	if failure := wantError(t, err, memory.ErrInvalidArgument); failure.Field != "category" {
		t.Errorf("the field is %q", failure.Field)
	}
	_, err = client.SaveMemory(soon(t), "User likes apple pie", memory.CategoryPreference, lasting,
		&memory.SaveMemoryOptions{DecideBy: memory.DecidedByLLM})
	if failure := wantError(t, err, memory.ErrFailedPrecondition); failure.Reason != memory.ReasonLLMRequired {
		t.Errorf("the reason is %s", failure.Reason)
	}
	_, err = client.SaveMemory(soon(t), "User likes apple pie", memory.CategoryPreference, lasting, nil,
		memory.WithExpectedVersion(1))
	wantError(t, err, memory.ErrInvalidArgument)
	for _, err := range client.ListMemories(soon(t), &memory.ListMemoriesOptions{Categories: []memory.MemoryCategory{"pastry"}}) {
		wantError(t, err, memory.ErrInvalidArgument)
	}
}

func TestSearchMemoriesTakesEveryOption(t *testing.T) {
	client := dial(t)
	saveFact(t, client, "User drinks green tea every morning")
	saveFact(t, client, "User drinks strong coffee at work")
	saveFact(t, client, "User rides a red bicycle to town")
	found := ok[*memory.MemoryResults](t)(client.SearchMemories(soon(t), "green tea", nil))
	if len(found.Results) == 0 || found.Results[0].Memory.Content != "User drinks green tea every morning" || found.Revision == 0 {
		t.Fatalf("found are %+v", found)
	}
	options := &memory.SearchMemoriesOptions{
		Limit: memory.Ptr(-1), Mode: memory.RetrieveLexical, Explain: true, PageSize: 1,
		MinScore: memory.Ptr(0.0), Categories: []memory.MemoryCategory{memory.CategoryPreference},
	}
	drinks := ok[*memory.MemoryResults](t)(client.SearchMemories(soon(t), "drinks", options))
	if len(drinks.Results) != 2 {
		t.Fatalf("over all pages there are %d", len(drinks.Results))
	}
	for _, result := range drinks.Results {
		if len(result.Explanation) != 1 || result.Explanation[0].Channel != "lexical" || result.Score <= 0 {
			t.Errorf("%q is explained by %+v", result.Memory.Content, result.Explanation)
		}
	}
	none := ok[*memory.MemoryResults](t)(
		client.SearchMemories(soon(t), "tea", &memory.SearchMemoriesOptions{Limit: memory.Ptr(0)}))
	if len(none.Results) != 0 {
		t.Errorf("a limit of 0 finds %d", len(none.Results))
	}
}

func TestListMemoriesPagesByItself(t *testing.T) {
	client := dial(t)
	// Facts that are not similar to others.
	for _, content := range []string{
		"User plays the violin on Sundays", "User has a cat named Pixel",
		"User grew up near the harbour", "User speaks Portuguese at home",
		"User collects old fountain pens",
	} {
		saveFact(t, client, content)
	}
	inOrder := contents(listFacts(t, client, &memory.ListMemoriesOptions{PageSize: 2}))
	if len(inOrder) != 5 || inOrder[0] != "User plays the violin on Sundays" {
		t.Errorf("in pages of 2 there are %q", inOrder)
	}
	turned := contents(listFacts(t, client, &memory.ListMemoriesOptions{PageSize: 2, NewestFirst: true}))
	slices.Reverse(turned)
	if !slices.Equal(turned, inOrder) {
		t.Errorf("turned round there are %q", turned)
	}
}

func TestUpdateMemory(t *testing.T) {
	client := dial(t)
	fact := saveFact(t, client, "User prefers tea with lemon").Memory
	updated := ok[*memory.UpdatedMemory](t)(client.UpdateMemory(soon(t), fact.ID, memory.MemoryCorrection{
		Content: "User prefers tea with honey", Importance: memory.Ptr(3.0), KeepWording: true,
		Metadata: map[string]any{"checked": true}, ExpireTime: time.Now().Add(time.Hour),
	}, memory.WithExpectedVersion(1)))
	changed := updated.Memory
	if updated.Outcome != memory.OutcomeSaved || changed.Content != "User prefers tea with honey" || changed.Version != 2 {
		t.Errorf("updated is %+v", changed)
	}
	if changed.Importance.Score != 3 || changed.Metadata["checked"] != true || changed.ExpireTime.IsZero() {
		t.Errorf("updated is %+v", changed)
	}
	cleared := ok[*memory.UpdatedMemory](t)(client.UpdateMemory(
		soon(t), fact.ID, memory.MemoryCorrection{}, memory.WithFields("expire_time", "metadata")))
	if !cleared.Memory.ExpireTime.IsZero() || len(cleared.Memory.Metadata) != 0 || cleared.Memory.Content != changed.Content {
		t.Errorf("cleared is %+v", cleared.Memory)
	}
	_, err := client.UpdateMemory(soon(t), fact.ID, memory.MemoryCorrection{Reasoning: lasting}, memory.WithExpectedVersion(1))
	if failure := wantError(t, err, memory.ErrConflict); failure.Metadata["current_version"] != "3" {
		t.Errorf("told is %v", failure.Metadata)
	}
	_, err = client.UpdateMemory(soon(t), "nobody", memory.MemoryCorrection{Reasoning: lasting})
	wantError(t, err, memory.ErrNotFound)
}

func TestDeleteMemoryTakesItsHistory(t *testing.T) {
	client := dial(t)
	saveFact(t, client, "User lives in Lisbon")
	saveFact(t, client, "User lives in Porto")
	held := listFacts(t, client, nil)[0]
	_, err := client.DeleteMemory(soon(t), held.ID, nil, memory.WithExpectedVersion(9))
	wantError(t, err, memory.ErrConflict)
	removed := ok[*memory.RemovedMemories](t)(
		client.DeleteMemory(soon(t), held.ID, &memory.DeleteMemoryOptions{IncludeHistory: true}))
	if removed.Count != 2 || removed.Revision == 0 {
		t.Errorf("removed are %+v", removed)
	}
	_, err = client.DeleteMemory(soon(t), held.ID, nil)
	if failure := wantError(t, err, memory.ErrNotFound); failure.Reason != memory.ReasonMemoryNotFound {
		t.Errorf("the reason is %s", failure.Reason)
	}
}

func TestGetPreloadedMemories(t *testing.T) {
	client := dial(t)
	saveFact(t, client, "User prefers short answers in French")
	ok[*memory.SavedMemory](t)(client.SaveMemory(
		soon(t), "User discussed the weather at length", memory.CategoryContext, lasting, nil))
	preloaded := ok[*memory.PreloadedMemories](t)(client.GetPreloadedMemories(soon(t), nil))
	if len(preloaded.Memories) != 1 || preloaded.TokenCount == 0 || preloaded.Text == "" {
		t.Errorf("preloaded are %+v", preloaded)
	}
	cut := ok[*memory.PreloadedMemories](t)(client.GetPreloadedMemories(soon(t), &memory.PreloadedMemoriesOptions{
		MaxTokens: memory.Ptr(1), Categories: []memory.MemoryCategory{memory.CategoryContext, memory.CategoryPreference},
	}))
	if len(cut.Memories) != 0 || cut.OmittedCount != 2 {
		t.Errorf("with one token there are %+v", cut)
	}
}

func TestExtractMemories(t *testing.T) {
	client := dial(t)
	messages := []*llms.Message{
		llms.NewUserMessage("I prefer window seats on every train."),
		llms.NewAssistantMessage("Noted."),
	}
	dry := ok[*memory.Extraction](t)(client.ExtractMemories(
		soon(t), messages, &memory.ExtractMemoriesOptions{DryRun: true, DecideBy: memory.DecidedByRules}))
	if len(dry.Results) != 1 || dry.Results[0].Memory.ID != "" || dry.ExaminedCount != 2 {
		t.Fatalf("a dry run finds %+v", dry)
	}
	wet := ok[*memory.Extraction](t)(client.ExtractMemories(soon(t), messages, &memory.ExtractMemoriesOptions{
		SessionID: "trip", Actor: "concierge", DecideBy: memory.DecidedByRules, Labels: map[string]string{"by": "chat"},
	}))
	fact := wet.Results[0].Memory
	if wet.Results[0].Outcome != memory.OutcomeSaved || fact.Source.Origin != memory.OriginExtracted || fact.Source.Actor != "concierge" {
		t.Errorf("extracted is %+v", fact)
	}
	if fact.Labels["by"] != "chat" || fact.Source.SessionID != "trip" || wet.DecidedBy != memory.DecidedByRules {
		t.Errorf("extracted is %+v", fact)
	}
	_, err := client.ExtractMemories(soon(t), []*llms.Message{nil}, nil)
	wantError(t, err, memory.ErrInvalidArgument)
}

func TestConsolidateMemories(t *testing.T) {
	client := dial(t)
	keep := &memory.SaveMemoryOptions{OnContradiction: memory.ContradictionKeepsBoth, KeepWording: true}
	for _, content := range []string{"User lives in Lisbon", "User lives in Porto"} {
		ok[*memory.SavedMemory](t)(client.SaveMemory(soon(t), content, memory.CategoryPreference, lasting, keep))
	}
	options := &memory.ConsolidateMemoriesOptions{SimilarityThreshold: memory.Ptr(0.3), DecideBy: memory.DecidedByRules, DryRun: true}
	dry := ok[*memory.Consolidations](t)(client.ConsolidateMemories(soon(t), options))
	if len(dry.Consolidations) != 1 || dry.Consolidations[0].Applied || dry.ExaminedCount != 2 {
		t.Fatalf("a dry run does %+v", dry)
	}
	options.DryRun = false
	done := ok[*memory.Consolidations](t)(client.ConsolidateMemories(soon(t), options)).Consolidations[0]
	if done.Action != memory.ActionSupersede || !done.Applied || len(done.Sources) != 2 || done.Similarity < 0.3 {
		t.Errorf("done is %+v", done)
	}
	if held := listFacts(t, client, nil); len(held) != 1 || held[0].Content != "User lives in Porto" {
		t.Errorf("there holds %q", contents(held))
	}
}
