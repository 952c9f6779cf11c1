package memory_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
)

func nextChange(t *testing.T, next func() (memory.Change, error, bool)) memory.Change {
	t.Helper()
	change, err, more := next()
	if err != nil || !more {
		t.Fatal(change, err, more)
	}
	return change
}

func TestWatchYieldsEveryChange(t *testing.T) {
	client := dial(t)
	item := ok[*memory.Item](t)(client.AddItem(soon(t), &memory.Item{Content: "a"}))
	ok[*memory.StateEntry](t)(client.SaveState(soon(t), "k", 1))
	ok[*memory.Item](t)(client.Update(soon(t), &memory.Item{ID: item.ID, Content: "b"}))
	ok[int64](t)(client.DeleteState(soon(t), "k"))
	next, stop := iter.Pull2(client.Watch(soon(t), memory.WithAfterRevision(0),
		memory.WithHeartbeatInterval(100*time.Millisecond)))
	defer stop()
	var seen []memory.ChangeType
	for range 4 {
		seen = append(seen, nextChange(t, next).Type)
	}
	equal(t, seen, []memory.ChangeType{memory.ItemAdded, memory.StateSaved, memory.ItemUpdated, memory.StateDeleted})
	go func() {
		client.Delete(context.Background(), item.ID)
		client.SaveState(context.Background(), "k", []any{"x"})
	}()
	removed := nextChange(t, next)
	equal(t, removed, memory.Change{Type: memory.ItemDeleted, Revision: 5, ItemID: item.ID})
	saved := nextChange(t, next)
	equal(t, []any{saved.Type, saved.StateKey, saved.State.Value}, []any{memory.StateSaved, "k", []any{"x"}})
}

func TestWatchBeginsNowAndEndsWithItsContext(t *testing.T) {
	client := dial(t)
	addTexts(t, client, "before")
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	var seen []any
	// The watch has begun when the first of these is seen.
	writing, stop := context.WithCancel(soon(t))
	defer stop()
	go func() {
		for number := 0; writing.Err() == nil; number++ {
			client.Add(writing, &memory.Item{Content: fmt.Sprintf("after %d", number)})
		}
	}()
	for change, err := range client.Watch(ctx) {
		if err != nil {
			wantError(t, err, context.Canceled)
			break
		}
		seen = append(seen, change.Item.Content)
		stop()
		cancel()
	}
	if len(seen) == 0 || !strings.HasPrefix(seen[0].(string), "after") {
		t.Fatal(seen)
	}
}

func TestWatchGoesOnAfterARestart(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			dataDir := t.TempDir()
			first := ownServer(t, dataDir)
			client := dialTo(t, first.address)
			addTexts(t, client, "a", "b")
			next, stop := iter.Pull2(client.Watch(soon(t), memory.WithAfterRevision(0)))
			defer stop()
			equal(t, nextChange(t, next).Item.Content, "a")
			end(first)
			ownServer(t, dataDir, "--address", first.address)
			other, err := memory.Dial(first.address, memory.WithNamespace(onlyNamespace(t, client)))
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			addTexts(t, other, "c")
			equal(t, nextChange(t, next).Item.Content, "b")
			equal(t, nextChange(t, next).Item.Content, "c")
		})
	}
}

func onlyNamespace(t *testing.T, client *memory.Client) string {
	t.Helper()
	for summary, err := range client.ListNamespaces(soon(t), "") {
		if err != nil {
			t.Fatal(err)
		}
		return summary.Namespace
	}
	t.Fatal("there is no namespace")
	return ""
}

func TestWatchGivesUpAfterTheTimeGiven(t *testing.T) {
	server := ownServer(t, t.TempDir())
	client := dialTo(t, server.address)
	addTexts(t, client, "a")
	for _, err := range client.Watch(soon(t), memory.WithAfterRevision(0), memory.WithGiveUpAfter(time.Millisecond)) {
		if err != nil {
			wantError(t, err, memory.ErrUnavailable)
			return
		}
		server.kill()
	}
	t.Fatal("the watch ended without an error")
}

func TestExportAndImportCarryEverything(t *testing.T) {
	client := dial(t)
	kept := ok[*memory.Item](t)(client.AddItem(soon(t), &memory.Item{
		Content: everyPart(), SessionID: "s", Labels: map[string]string{"a": "b"},
		Metadata: map[string]any{"n": 1.5}, Embedding: []float32{1, 2}, CreateTime: noon,
	}))
	for key, value := range map[string]any{"null": nil, "list": []any{1.0}} {
		ok[*memory.StateEntry](t)(client.SaveState(soon(t), key, value, memory.WithDescription("d")))
	}
	other := client.Namespace(namespaceOf(t) + "-copy")
	summary := ok[*memory.ImportSummary](t)(
		other.ImportItems(soon(t), client.Export(soon(t), memory.WithExportedEmbeddings()), memory.WithBatchRecords(1)))
	equal(t, []int64{summary.ImportedCount, summary.ImportedStateCount, summary.Revision}, []int64{1, 2, 3})
	copied := ok[*memory.Item](t)(other.Get(soon(t), kept.ID, memory.WithEmbeddings()))
	want := *kept
	want.Embedding, want.Revision, want.UpdateTime = []float32{1, 2}, copied.Revision, copied.UpdateTime
	equal(t, *copied, want)
	equal(t, ok[*memory.StateEntry](t)(other.LoadState(soon(t), "list")).Value, []any{1.0})

	_, err := other.ImportItems(soon(t), client.Export(soon(t)))
	if !errors.Is(err, memory.ErrAlreadyExists) && !errors.Is(err, memory.ErrConflict) {
		t.Fatal(err)
	}
	summary = ok[*memory.ImportSummary](t)(
		other.ImportItems(soon(t), client.Export(soon(t)), memory.WithOnDuplicate(memory.DuplicateSkip)))
	equal(t, []int64{summary.SkippedCount, summary.SkippedStateCount}, []int64{1, 2})
	equal(t, firstError(client.Export(soon(t), memory.WithAfterRevision(3))), nil)
	err = firstError(client.Namespace(namespaceOf(t) + "-none").Export(soon(t)))
	equal(t, wantError(t, err, memory.ErrNotFound).Reason, memory.ReasonNamespaceNotFound)
}

func TestExportKeepsWhatOtherServicesKeep(t *testing.T) {
	client := dial(t)
	if _, err := client.SaveMemory(soon(t), "I live in Paris", memory.CategoryIdentity, "where the user lives", nil); err != nil {
		t.Fatal(err)
	}
	before := onlyExported(t, client)
	equal(t, before.Kind, memory.KindUserMemory)
	other := client.Namespace(namespaceOf(t) + "-copy")
	ok[*memory.ImportSummary](t)(other.ImportItems(soon(t), client.Export(soon(t))))
	after := onlyExported(t, other)
	equal(t, after.Kind, memory.KindUserMemory)
	equal(t, after.FacetJSON, before.FacetJSON)
	equal(t, len(retrieve(t, other)), 0) // It is a fact, and no part of a conversation.
}

func onlyExported(t *testing.T, client *memory.Client) *memory.Item {
	t.Helper()
	for record, err := range client.Export(soon(t)) {
		if err != nil {
			t.Fatal(err)
		}
		return record.(*memory.Item)
	}
	t.Fatal("the export is empty")
	return nil
}

func TestThousandsOfItemsAreImported(t *testing.T) {
	const count = 3000
	client := dial(t)
	numbered := func(yield func(*memory.Item) bool) {
		for number := range count {
			if !yield(&memory.Item{Content: fmt.Sprintf("item %d", number), Embedding: []float32{1}}) {
				return
			}
		}
	}
	summary := ok[*memory.ImportSummary](t)(client.ImportItems(soon(t), memory.Records(numbered)))
	equal(t, summary.ImportedCount, int64(count))
	number := 0
	for record, err := range client.Export(soon(t)) {
		if err != nil {
			t.Fatal(err)
		}
		equal(t, record.(*memory.Item).Content, fmt.Sprintf("item %d", number))
		number++
	}
	equal(t, number, count)
}

func TestLargeRecordsGoInSmallBatches(t *testing.T) {
	client := dial(t)
	large := slices.Repeat([]*memory.Item{{Content: map[string]any{"a": strings.Repeat("x", 200<<10)}, Embedding: []float32{1}}}, 100)
	summary := ok[*memory.ImportSummary](t)(client.ImportItems(soon(t), memory.Records(slices.Values(large))))
	equal(t, summary.ImportedCount, int64(100))
}

func TestAnImportEndsWithTheErrorOfItsSource(t *testing.T) {
	client := dial(t)
	broken := errors.New("the disk was pulled out")
	source := func(yield func(memory.Record, error) bool) {
		if yield(&memory.Item{Content: "a"}, nil) && yield(&memory.Item{Content: "b"}, nil) {
			yield(nil, broken)
		}
	}
	_, err := client.ImportItems(soon(t), source)
	equal(t, err, broken)
	equal(t, len(retrieve(t, client)), 0)
	_, err = client.ImportItems(soon(t), memory.Records(slices.Values([]*memory.Item{{Content: "a"}, {Content: 7}})))
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "items[1].content")
	_, err = client.ImportItems(soon(t), memory.Records(slices.Values([]*memory.Item{nil})))
	wantError(t, err, memory.ErrInvalidArgument)
	_, err = client.ImportItems(soon(t), source, memory.WithBatchRecords(1001))
	wantError(t, err, memory.ErrInvalidArgument)
	_, err = client.ImportItems(soon(t), source, memory.WithOnDuplicate("toss"))
	equal(t, wantError(t, err, memory.ErrInvalidArgument).Field, "on_duplicate")
}
