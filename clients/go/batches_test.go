package memory_test

import (
	"fmt"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
)

func TestAnIDThatExistsIsSkippedOrReplaced(t *testing.T) {
	client := dial(t)
	first := ok[*memory.Item](t)(client.AddItem(soon(t), &memory.Item{ID: "a", Content: "one", CreateTime: noon}))
	addTexts(t, client, "between")
	again := &memory.Item{ID: "a", Content: "two", Revision: 7}
	_, err := client.AddItem(soon(t), again)
	wantError(t, err, memory.ErrAlreadyExists)
	skipped := ok[*memory.Item](t)(client.AddItem(soon(t), again, memory.WithOnDuplicate(memory.DuplicateSkip)))
	equal(t, skipped, &memory.Item{ID: "a", Content: "two"})
	equal(t, again.Revision, int64(7)) // The caller's item stays as it is.
	equal(t, ok[*memory.Item](t)(client.Get(soon(t), "a")), first)
	replaced := ok[*memory.Item](t)(client.AddItem(soon(t), again, memory.WithOnDuplicate(memory.DuplicateReplace)))
	equal(t, []any{replaced.Content, replaced.Revision, replaced.CreateTime}, []any{"two", int64(3), noon})
	equal(t, texts(retrieve(t, client)), "two between")
	_, err = client.AddItem(soon(t), again, memory.WithOnDuplicate("ask"))
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "on_duplicate")
	_, err = client.Update(soon(t), again, memory.WithOnDuplicate(memory.DuplicateSkip))
	wantError(t, err, memory.ErrInvalidArgument)
}

func TestABatchReturnsTheItemsThatWereNotSkipped(t *testing.T) {
	client := dial(t)
	batch := []*memory.Item{{ID: "a", Content: "a"}, {ID: "b", Content: "b"}}
	ok[[]*memory.Item](t)(client.BatchAdd(soon(t), batch[:1]))
	written := ok[[]*memory.Item](t)(client.BatchAdd(soon(t), batch, memory.WithOnDuplicate(memory.DuplicateSkip)))
	equal(t, []any{len(written), written[0].ID}, []any{1, memory.MemoryItemId("b")})
	written = ok[[]*memory.Item](t)(client.BatchAdd(soon(t), batch, memory.WithOnDuplicate(memory.DuplicateReplace)))
	equal(t, []any{len(written), written[0].Revision}, []any{2, int64(3)})
	_, err := client.BatchAdd(soon(t), batch, memory.WithOnDuplicate("ask"))
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "on_duplicate")
}

func TestDeleteWhereDeletesWhatMatchesAllConditions(t *testing.T) {
	client := dial(t)
	red := map[string]string{"colour": "red"}
	add(t, client,
		&memory.Item{Content: "a", SessionID: "s", Labels: red, CreateTime: noon},
		&memory.Item{Content: "b", SessionID: "s", Labels: red, CreateTime: noon.Add(time.Hour)},
		&memory.Item{Content: "c", SessionID: "s", CreateTime: noon},
		&memory.Item{Content: "d", SessionID: "t", Labels: red, CreateTime: noon},
	)
	conditions := memory.DeleteConditions{
		SessionID: "s",
		Labels:    red,
		Kinds:     []memory.ItemKind{memory.KindPlain},
		Filter:    `NOT labels.colour = "blue"`,
		StartTime: noon,
		EndTime:   noon.Add(time.Hour),
	}
	equal(t, ok[int64](t)(client.DeleteWhere(soon(t), conditions, memory.WithDryRun())), int64(1))
	equal(t, texts(retrieve(t, client)), "a b c d")
	equal(t, ok[int64](t)(client.DeleteWhere(soon(t), conditions)), int64(1))
	equal(t, texts(retrieve(t, client)), "b c d")
	equal(t, ok[int64](t)(client.DeleteWhere(soon(t), conditions)), int64(0))
	_, err := client.DeleteWhere(soon(t), memory.DeleteConditions{})
	wantError(t, err, memory.ErrInvalidArgument)
	_, err = client.DeleteWhere(soon(t), memory.DeleteConditions{Kinds: []memory.ItemKind{memory.KindDocument}})
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "kinds")
	_, err = client.DeleteWhere(soon(t), memory.DeleteConditions{Kinds: []memory.ItemKind{"thought"}})
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "kinds")
	_, err = client.Delete(soon(t), "x", memory.WithDryRun())
	wantError(t, err, memory.ErrInvalidArgument)
}

func TestDeleteWhereGoesOnUntilNothingIsLeft(t *testing.T) {
	const count = 10_500 // The server deletes 10,000 at a time.
	client := dial(t)
	batch := make([]*memory.Item, 500)
	for index := range batch {
		batch[index] = &memory.Item{Content: "x", SessionID: "s", Embedding: []float32{1}}
	}
	for range count / len(batch) {
		ok[[]*memory.Item](t)(client.BatchAdd(soon(t), batch))
	}
	add(t, client, &memory.Item{Content: "other", Embedding: []float32{1}})
	conditions := memory.DeleteConditions{SessionID: "s"}
	equal(t, ok[int64](t)(client.DeleteWhere(soon(t), conditions, memory.WithDryRun())), int64(count))
	_, err := client.BatchWrite(soon(t), []memory.WriteOperation{&memory.DeleteWhereOperation{SessionID: "s"}})
	equal(t, wantError(t, err, memory.ErrLimitExceeded).Metadata["limit_name"], "delete_items_max")
	equal(t, ok[int64](t)(client.DeleteWhere(soon(t), conditions, memory.WithRequestID("all"))), int64(count))
	equal(t, texts(retrieve(t, client)), "other")
}

// everyOperation prepares a namespace and returns one operation of each kind on it.
func everyOperation(t *testing.T, client *memory.Client) []memory.WriteOperation {
	t.Helper()
	items := ok[[]*memory.Item](t)(client.BatchAdd(soon(t), []*memory.Item{
		{ID: "update", Content: "one", SessionID: "s", Labels: map[string]string{"a": "b"}},
		{ID: "delete", Content: "two"}, {ID: "old-1", Content: "three", SessionID: "old"},
		{ID: "old-2", Content: "four", SessionID: "old"},
	}))
	saved := ok[*memory.StateEntry](t)(client.SaveState(soon(t), "gone", 1))
	return []memory.WriteOperation{
		&memory.AddOperation{Item: &memory.Item{ID: "add", Content: "five", TTL: time.Hour}},
		&memory.AddOperation{Item: &memory.Item{ID: "update-2", Content: "six"}, OnDuplicate: memory.DuplicateReplace},
		&memory.UpdateOperation{
			Item:             &memory.Item{ID: "update", Content: "one, changed", SessionID: "ignored"},
			Fields:           []string{"content", "labels"},
			ExpectedRevision: &items[0].Revision,
		},
		&memory.DeleteOperation{ID: "delete", ExpectedRevision: &items[1].Revision},
		&memory.DeleteOperation{ID: "never", AllowMissing: true},
		&memory.DeleteWhereOperation{SessionID: "old"},
		&memory.SaveStateOperation{
			Key: "plan", Value: map[string]any{"step": 1}, ExpectedVersion: memory.Ptr(int64(0)),
			TTL: time.Hour, Description: memory.Ptr("what to do"),
		},
		&memory.DeleteStateOperation{Key: "gone", ExpectedVersion: &saved.Version},
		&memory.DeleteStateOperation{Key: "never", AllowMissing: true},
	}
}

func TestABatchAppliesEveryOperation(t *testing.T) {
	client := dial(t)
	operations := everyOperation(t, client)
	written := ok[*memory.BatchWriteResult](t)(client.BatchWrite(soon(t), operations))
	equal(t, len(written.Degraded), 0)
	equal(t, len(written.Results), len(operations))
	ids, deleted := "", ""
	for _, result := range written.Results {
		ids += string(result.ID) + " "
		deleted += fmt.Sprint(result.DeletedCount)
		isWritten := result.Revision > 0
		if isWritten == result.CreateTime.IsZero() || isWritten == result.UpdateTime.IsZero() || result.Skipped {
			t.Fatalf("%+v", result)
		}
	}
	equal(t, ids, "add update-2 update       ")
	equal(t, deleted, "000102010")
	added, saved := written.Results[0], written.Results[6]
	if added.ExpireTime.Before(time.Now()) || saved.ExpireTime.Before(time.Now()) || saved.Version == 0 {
		t.Fatalf("%+v %+v", added, saved)
	}
	equal(t, texts(retrieve(t, client)), "one, changed five six")
	updated := ok[*memory.Item](t)(client.Get(soon(t), "update"))
	equal(t, []any{updated.SessionID, len(updated.Labels)}, []any{"s", 0})
	plan := ok[*memory.StateEntry](t)(client.LoadState(soon(t), "plan"))
	equal(t, []any{plan.Value, plan.Description, plan.Version},
		[]any{map[string]any{"step": 1.0}, "what to do", saved.Version})
	_, err := client.LoadState(soon(t), "gone")
	wantError(t, err, memory.ErrNotFound)
}

func TestABatchOfOperationsIsWrittenWholeOrNotAtAll(t *testing.T) {
	client := dial(t)
	add(t, client, &memory.Item{ID: "a", Content: "a"})
	fine := &memory.AddOperation{Item: &memory.Item{Content: "b"}}
	for field, failing := range map[string]memory.WriteOperation{
		"operations[1].add.item":           &memory.AddOperation{},
		"operations[1].add.item.content":   &memory.AddOperation{Item: &memory.Item{Content: 7}},
		"operations[1].add.item.text":      &memory.AddOperation{Item: &memory.Item{Content: ""}},
		"operations[1].add.on_duplicate":   &memory.AddOperation{Item: &memory.Item{Content: "x"}, OnDuplicate: "ask"},
		"operations[1].update.item":        &memory.UpdateOperation{},
		"operations[1].delete_where.kinds": &memory.DeleteWhereOperation{Kinds: []memory.ItemKind{"thought"}},
		"operations[1].save_state.value":   &memory.SaveStateOperation{Key: "k", Value: make(chan int)},
		"operations[1].save_state.ttl":     &memory.SaveStateOperation{Key: "k", TTL: -time.Second},
		"operations[1]":                    (*memory.DeleteOperation)(nil),
	} {
		_, err := client.BatchWrite(soon(t), []memory.WriteOperation{fine, failing})
		equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, field)
	}
	for _, failing := range []struct {
		err       error
		operation memory.WriteOperation
	}{
		{memory.ErrAlreadyExists, &memory.AddOperation{Item: &memory.Item{ID: "a", Content: "x"}}},
		{memory.ErrNotFound, &memory.UpdateOperation{Item: &memory.Item{ID: "never", Content: "x"}}},
		{memory.ErrNotFound, &memory.DeleteOperation{ID: "never"}},
		{memory.ErrNotFound, &memory.DeleteStateOperation{Key: "never"}},
		{memory.ErrConflict, &memory.DeleteOperation{ID: "a", ExpectedRevision: memory.Ptr(int64(7))}},
		{memory.ErrConflict, &memory.SaveStateOperation{Key: "k", ExpectedVersion: memory.Ptr(int64(7))}},
	} {
		_, err := client.BatchWrite(soon(t), []memory.WriteOperation{fine, failing.operation})
		wantError(t, err, failing.err)
	}
	_, err := client.BatchWrite(soon(t), nil)
	wantError(t, err, memory.ErrInvalidArgument)
	equal(t, texts(retrieve(t, client)), "a")
}

func TestABatchWithARequestIDIsAppliedOnce(t *testing.T) {
	client := dial(t)
	once := memory.WithRequestID("batch-1")
	operations := []memory.WriteOperation{&memory.AddOperation{Item: &memory.Item{Content: "a"}}}
	first := ok[*memory.BatchWriteResult](t)(client.BatchWrite(soon(t), operations, once))
	equal(t, ok[*memory.BatchWriteResult](t)(client.BatchWrite(soon(t), operations, once)), first)
	equal(t, texts(retrieve(t, client)), "a")
}
