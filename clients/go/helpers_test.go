package memory_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/llms"
)

var noon = time.Date(2026, 5, 17, 12, 0, 0, 123456000, time.UTC)

func add(t *testing.T, kept memory.Memory, items ...memory.MemoryItem) {
	t.Helper()
	for _, item := range items {
		if err := kept.Add(soon(t), item); err != nil {
			t.Fatal(err)
		}
	}
}

func addTexts(t *testing.T, kept memory.Memory, texts ...string) {
	t.Helper()
	for _, text := range texts {
		add(t, kept, &memory.Item{Content: text})
	}
}

func retrieve(t *testing.T, kept memory.Memory, options ...memory.MemoryRetrieveOption) []memory.MemoryItem {
	t.Helper()
	return ok[[]memory.MemoryItem](t)(kept.Retrieve(soon(t), options...))
}

func onlyItem(t *testing.T, kept memory.Memory) memory.MemoryItem {
	t.Helper()
	items := retrieve(t, kept)
	if len(items) != 1 {
		t.Fatalf("there are %d items", len(items))
	}
	return items[0]
}

func texts(items []memory.MemoryItem) string {
	var all []string
	for _, item := range items {
		all = append(all, item.GetContent().(string))
	}
	return strings.Join(all, " ")
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %#v\nwant %#v", got, want)
	}
}

func pointer[T any](value T) *T { return &value }

func everyPart() *llms.Message {
	return &llms.Message{
		MessageId: "message-7",
		Creator:   llms.Creator{Role: llms.RoleAssistant, Name: pointer("Ada")},
		Model:     &llms.Model{Provider: "openai", ID: "gpt-5"},
		Timestamp: noon,
		Parts: []llms.Part{
			&llms.TextPart{Text: "Tea — 茶 — ☕\u0000\U0001F375"},
			&llms.TextPart{},
			&llms.DataPart{Data: map[string]any{"a": []any{1.5, "x", nil, true}, "b": map[string]any{"c": -0.25}}},
			&llms.BinaryPart{
				Name: pointer("cat.png"), URL: pointer("https://example.org/cat.png"), MIMEType: "image/png",
				Content: []byte{0, 255, 10}, ContentLength: pointer(int64(3)),
			},
			&llms.BinaryPart{MIMEType: "audio/wav", ContentLength: pointer(int64(-1))},
			&llms.BinaryPart{Name: pointer(""), URL: pointer("")},
			&llms.ToolCall{ToolCallId: "call-1", Name: "trains", Arguments: map[string]any{"to": "Paris"}},
			&llms.ToolCall{Name: "clock"},
			&llms.ToolCallResult{ToolCallId: "call-1", Name: "trains", Result: map[string]any{"at": "12:04"}},
			&llms.ToolCallResult{Name: "trains", Result: "no such train", IsError: true},
			&llms.ToolCallResult{},
		},
	}
}

func ok[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func wantError(t *testing.T, err, target error) *memory.Error {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("the error is %v, not %v", err, target)
	}
	var failure *memory.Error
	if !errors.As(err, &failure) {
		t.Fatalf("%v is no *memory.Error", err)
	}
	return failure
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
