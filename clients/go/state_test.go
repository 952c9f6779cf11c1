package memory_test

import (
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
)

type plan struct {
	Step int      `json:"step"`
	Todo []string `json:"todo"`
}

func TestStateIsVersioned(t *testing.T) {
	client := dial(t)
	saved := ok[*memory.StateEntry](t)(client.SaveState(soon(t), "plan", plan{Step: 1},
		memory.WithExpectedVersion(0), memory.WithDescription("what to do")))
	equal(t, []any{saved.Version, saved.Value}, []any{int64(1), nil})
	ok[*memory.StateEntry](t)(client.SaveState(soon(t), "plan", plan{2, []string{"pack"}},
		memory.WithExpectedVersion(1), memory.WithTTL(time.Hour)))
	_, err := client.SaveState(soon(t), "plan", nil, memory.WithExpectedVersion(1))
	failure := wantError(t, err, memory.ErrConflict)
	equal(t, failure.Reason, memory.ReasonVersionMismatch)
	equal(t, failure.Metadata["current_version"], "2")

	loaded := ok[*memory.StateEntry](t)(client.LoadState(soon(t), "plan"))
	equal(t, loaded.Value, map[string]any{"step": 2.0, "todo": []any{"pack"}})
	equal(t, []any{loaded.Version, loaded.Description}, []any{int64(2), "what to do"})
	if loaded.ExpireTime.Before(time.Now()) || loaded.CreateTime.IsZero() || loaded.UpdateTime.Before(loaded.CreateTime) {
		t.Fatalf("%+v", loaded)
	}
	var decoded plan
	if err := loaded.Decode(&decoded); err != nil {
		t.Fatal(err)
	}
	equal(t, decoded, plan{2, []string{"pack"}})
	if err := loaded.Decode(&[]int{}); err == nil {
		t.Fatal("an object was decoded as a list")
	}
}

func TestStateHoldsEveryJSONValue(t *testing.T) {
	client := dial(t)
	for _, value := range []any{nil, true, "茶\n", 0.1, []any{}, map[string]any{}, []any{nil, -1.0, map[string]any{"": ""}}} {
		ok[*memory.StateEntry](t)(client.SaveState(soon(t), "k", value))
		equal(t, ok[*memory.StateEntry](t)(client.LoadState(soon(t), "k")).Value, value)
	}
	_, err := client.SaveState(soon(t), "k", []any{0, int64(1)<<53 + 1})
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "value[1]")
	_, err = client.SaveState(soon(t), "k", 1, memory.WithTTL(0))
	wantError(t, err, memory.ErrInvalidArgument)
	_, err = client.LoadState(soon(t), "other")
	equal(t, wantError(t, err, memory.ErrNotFound).Reason, memory.ReasonStateNotFound)
}

func keys(t *testing.T, entries func(yield func(*memory.StateEntry, error) bool)) (keys, previews string) {
	t.Helper()
	for entry, err := range entries {
		if err != nil {
			t.Fatal(err)
		}
		keys += entry.Key + " "
		previews += entry.Preview + " "
	}
	return keys, previews
}

func TestStateIsListedSearchedAndRemoved(t *testing.T) {
	client := dial(t)
	for key, value := range map[string]any{"plan/a": nil, "plan/b": "text", "other": []int{1}} {
		ok[*memory.StateEntry](t)(client.SaveState(soon(t), key, value))
	}
	listed, previews := keys(t, client.ListStateKeys(soon(t), memory.WithPreviews(), memory.WithEntriesPerPage(1)))
	equal(t, []string{listed, previews}, []string{"other plan/a plan/b ", `[1] null "text" `})
	listed, _ = keys(t, client.ListStateKeys(soon(t), memory.WithKeyPrefix("plan/")))
	equal(t, listed, "plan/a plan/b ")
	found, previews := keys(t, client.SearchState(soon(t), "plan/*"))
	equal(t, []string{found, previews}, []string{"plan/a plan/b ", "  "})
	for entry, err := range client.SearchState(soon(t), "plan/[!a]", memory.WithEntriesPerPage(1)) {
		equal(t, []any{entry.Value, err}, []any{"text", nil})
	}
	_, err := client.DeleteState(soon(t), "plan/a", memory.WithExpectedVersion(7))
	wantError(t, err, memory.ErrConflict)
	equal(t, ok[int64](t)(client.DeleteState(soon(t), "plan/a", memory.WithExpectedVersion(1))), int64(4))
	_, err = client.DeleteState(soon(t), "plan/a")
	wantError(t, err, memory.ErrNotFound)
	equal(t, ok[memory.Removed](t)(client.ClearState(soon(t))), memory.Removed{StateCount: 2, Revision: 5})
}

func TestStateIsRenamed(t *testing.T) {
	client := dial(t)
	ok[*memory.StateEntry](t)(client.SaveState(soon(t), "draft", 1, memory.WithDescription("what to do")))
	saved := ok[*memory.StateEntry](t)(client.SaveState(soon(t), "draft", 2))
	renamed := ok[*memory.StateEntry](t)(client.RenameState(soon(t), "draft", "plan", memory.WithExpectedVersion(2)))
	equal(t, []any{renamed.Key, renamed.Version, renamed.Description}, []any{"plan", int64(2), "what to do"})
	equal(t, renamed.CreateTime, saved.CreateTime)
	equal(t, ok[*memory.StateEntry](t)(client.LoadState(soon(t), "plan")).Value, any(2.0))
	_, err := client.RenameState(soon(t), "draft", "other")
	wantError(t, err, memory.ErrNotFound)
	ok[*memory.StateEntry](t)(client.SaveState(soon(t), "other", 3))
	_, err = client.RenameState(soon(t), "other", "plan")
	equal(t, wantError(t, err, memory.ErrAlreadyExists).Reason, memory.ReasonStateAlreadyExists)
}
