package memory_test

import (
	"strings"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
)

func TestCheckRelevanceReturnsWhatAGoalNeeds(t *testing.T) {
	client := dial(t)
	ok[*memory.StateEntry](t)(client.SaveState(soon(t), "kudos/list", []string{"Ada", "Grace"}, memory.WithDescription("people on the kudos list")))
	ok[*memory.StateEntry](t)(client.SaveState(soon(t), "weather", map[string]any{"lisbon": 21}))
	relevance := ok[*memory.Relevance](t)(client.CheckRelevance(
		soon(t), "Who is on my kudos list?", &memory.CheckRelevanceOptions{Explain: true, DecideBy: memory.DecidedByRules}))
	if len(relevance.Entries) != 1 || relevance.Entries[0].Key != "kudos/list" || relevance.DecidedBy != memory.DecidedByRules {
		t.Fatalf("relevant is %+v", relevance)
	}
	if !strings.HasPrefix(relevance.ContextText, "[Relevant Memory]") || relevance.TokenCount == 0 || relevance.KeyCount != 2 {
		t.Errorf("relevant is %+v", relevance)
	}
	first := relevance.Decisions[0]
	if first.Verdict != memory.VerdictRelevant || first.Reason == "" || first.Score <= 0 || len(first.Explanation) == 0 {
		t.Errorf("the decision is %+v", first)
	}
	if len(relevance.Degraded) != 0 || relevance.LLMUsage != nil || relevance.Revision != 2 {
		t.Errorf("beside it is %+v", relevance)
	}
	none := ok[*memory.Relevance](t)(client.CheckRelevance(soon(t), "Who is on my kudos list?", &memory.CheckRelevanceOptions{
		Limit: memory.Ptr(0), Pattern: "kudos/*",
	}))
	if len(none.Entries) != 0 || none.KeyCount != 1 || none.Decisions[0].Verdict != memory.VerdictOmitted {
		t.Errorf("with a limit of 0 it is %+v", none)
	}
}

func TestEvaluateForStorageSavesWhenAsked(t *testing.T) {
	client := dial(t)
	result := map[string]any{"members": []any{"Ada", "Grace", "Edsger"}, "count": 3}
	decision := ok[*memory.StorageDecision](t)(client.EvaluateForStorage(
		soon(t), "list_members", result, &memory.EvaluateForStorageOptions{
			Goal: "Find the members of the team", Save: true, Key: "team/members", TTL: time.Hour,
			Arguments: map[string]any{"team": "engine"}, DecideBy: memory.DecidedByRules,
		}))
	if !decision.ShouldSave || !decision.Saved || decision.Key != "team/members" || decision.Entry.Version != 1 {
		t.Fatalf("decided is %+v", decision)
	}
	if decision.Entry.ExpireTime.IsZero() || decision.Reason == "" || decision.Description == "" {
		t.Errorf("decided is %+v", decision)
	}
	entry := ok[*memory.StateEntry](t)(client.LoadState(soon(t), "team/members"))
	if entry.Value.(map[string]any)["count"] != 3.0 {
		t.Errorf("saved is %v", entry.Value)
	}
	again := ok[*memory.StorageDecision](t)(client.EvaluateForStorage(
		soon(t), "list_members", result, &memory.EvaluateForStorageOptions{Save: true, Key: "team/members"}))
	if again.Saved || again.ExistingVersion != 1 || len(again.Failures) != 1 || again.Failures[0].Reason != "KEY_EXISTS" {
		t.Errorf("the second time it is %+v", again)
	}
	if again.Failures[0].Key != "team/members" || again.Failures[0].Message == "" {
		t.Errorf("the failure is %+v", again.Failures[0])
	}
	failed := ok[*memory.StorageDecision](t)(client.EvaluateForStorage(
		soon(t), "list_members", "no such team", &memory.EvaluateForStorageOptions{IsError: true, Save: true}))
	if failed.ShouldSave || failed.Entry != nil {
		t.Errorf("a failure is %+v", failed)
	}
}

func TestOverseerRefusesWhatIsWrong(t *testing.T) {
	client := dial(t)
	_, err := client.CheckRelevance(soon(t), "anything at all", &memory.CheckRelevanceOptions{DecideBy: "dice"})
	if failure := wantError(t, err, memory.ErrInvalidArgument); failure.Field != "decide_by" {
		t.Errorf("the field is %q", failure.Field)
	}
	_, err = client.EvaluateForStorage(soon(t), "", 1, nil)
	if failure := wantError(t, err, memory.ErrInvalidArgument); failure.Field != "tool_name" {
		t.Errorf("the field is %q", failure.Field)
	}
	_, err = client.EvaluateForStorage(soon(t), "tool", func() {}, nil)
	wantError(t, err, memory.ErrInvalidArgument)
	_, err = client.EvaluateForStorage(soon(t), "tool", 1, &memory.EvaluateForStorageOptions{DecideBy: memory.DecidedByLLM})
	wantError(t, err, memory.ErrFailedPrecondition)
}
