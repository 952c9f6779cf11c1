package agentgo_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	agentmemory "github.com/oopslink/agent-go/pkg/core/memory"
	"github.com/oopslink/agent-go/pkg/support/llms"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/agentgo"
	clientllms "github.com/memory-service/memory-service/clients/go/llms"
)

func nested(levels int) map[string]any {
	inner := map[string]any{"leaf": []any{"tea"}}
	for range levels {
		inner = map[string]any{"in": inner}
	}
	return inner
}

// everyPart has each kind of part in each of its forms, including those that the server does not take
// unchanged, such as large ones.
func everyPart() map[string]llms.Part {
	name, url, none := "cat.png", "https://example.com/cat.png", ""
	long := strings.Repeat("tea and 🚆 ", 20_000)
	parts := map[string]llms.Part{
		"text":               &llms.TextPart{Text: "Ada likes tea"},
		"empty text":         &llms.TextPart{},
		"long text":          &llms.TextPart{Text: long},
		"text, not UTF-8":    &llms.TextPart{Text: "caf\xe9 \xff"},
		"nil data":           &llms.DataPart{},
		"empty data":         &llms.DataPart{Data: map[string]any{}},
		"large data":         &llms.DataPart{Data: map[string]any{"page": strings.Repeat(long, 3)}},
		"nil file":           &llms.BinaryPart{},
		"file":               llms.NewBinaryPartBuilder().Name(name).MIMEType("image/png").Content([]byte{0, 255}).Build(),
		"empty file":         llms.NewBinaryPartBuilder().Content([]byte{}).Build(),
		"file elsewhere":     llms.NewBinaryPartBuilder().URL(url).Build(),
		"file of length":     llms.NewBinaryPartBuilder().URL(url).ContentLength(1 << 40).Build(),
		"file of no name":    &llms.BinaryPart{Name: &none, URL: &none, MIMEType: "a/b", Content: []byte("x")},
		"contradictory file": &llms.BinaryPart{Content: []byte{}, ContentLength: 7},
		"long url":           &llms.BinaryPart{URL: &long},
		"call":               &llms.ToolCall{ToolCallId: "call-1", Name: "trains", Arguments: map[string]any{"to": "Lyon"}},
		"call with none":     &llms.ToolCall{Name: "now", Arguments: map[string]any{}},
		"call with nil":      &llms.ToolCall{},
		"call of odd name":   &llms.ToolCall{ToolCallId: "a\nb", Name: strings.Repeat("n", 2000), Arguments: map[string]any{}},
		"result with none":   &llms.ToolCallResult{ToolCallId: "call-1", Name: "trains", Result: map[string]any{}},
		"result with nil":    &llms.ToolCallResult{},
		"result of odd name": &llms.ToolCallResult{Name: "\x7f"},
		"large result":       &llms.ToolCallResult{Name: "read", Result: map[string]any{"file": strings.Repeat(long, 3)}},
	}
	maps.Copy(parts, everyValue())
	for levels := 15; levels < 35; levels++ {
		parts[fmt.Sprintf("data %d levels deep", levels)] = &llms.DataPart{Data: nested(levels)}
	}
	parts["data 500 levels deep"] = &llms.DataPart{Data: nested(500)}
	return parts
}

// everyValue has a result, data and arguments with each kind of JSON value.
func everyValue() map[string]llms.Part {
	parts := map[string]llms.Part{}
	values := map[string]any{
		"null": nil, "true": true, "text": "2^53+1 is 9007199254740993", "number": -1.5e-7, "huge": math.MaxFloat64,
		"list": []any{1.0, nil, []any{}, map[string]any{}}, "object": map[string]any{"": map[string]any{"é": false}},
	}
	for name, value := range values {
		parts["result: "+name] = &llms.ToolCallResult{Result: map[string]any{"value": value}}
		parts["data: "+name] = &llms.DataPart{Data: map[string]any{"value": value}}
		parts["arguments: "+name] = &llms.ToolCall{Arguments: map[string]any{"value": value}}
	}
	return parts
}

// Every part is returned equal: alone, between others, and a tool's result as a separate item.
func TestEveryPartComesBack(t *testing.T) {
	durable := agentgo.NewMemory(newClient(t))
	at := time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)
	tea := &llms.TextPart{Text: "tea"}
	for name, part := range everyPart() {
		t.Run(name, func(t *testing.T) {
			must(t, durable.Reset())
			alone := &llms.Message{Parts: []llms.Part{part}, Timestamp: at}
			between := &llms.Message{Parts: []llms.Part{tea, part, tea}, Timestamp: at}
			for _, message := range []*llms.Message{alone, between} {
				must(t, durable.Add(t.Context(), agentmemory.NewChatMessageMemoryItem(message)))
			}
			result, isResult := part.(*llms.ToolCallResult)
			if isResult {
				must(t, durable.Add(t.Context(), agentmemory.NewToolCallResultMemoryItem(result)))
			}
			found := retrieve(t, durable)
			equal(t, "alone", found[0].GetContent(), any(alone))
			equal(t, "between others", found[1].GetContent(), any(between))
			if isResult {
				equal(t, "as an item", found[2].GetContent(), any(result))
				message, ok := found[2].AsMessage()
				equal(t, "as a message", message, llms.NewToolCallResultMessage(result, found[2].GetCreatedAt()))
				equal(t, "that there is one", ok, true)
			}
		})
	}
}

// Integers beyond 2^53 keep their digits, as an int64 or an uint64.
func TestLargeIntegersKeepTheirDigits(t *testing.T) {
	durable := agentgo.NewMemory(newClient(t))
	data := map[string]any{
		"id": int64(1<<53 + 1), "least": int64(math.MinInt64), "most": uint64(math.MaxUint64), "double": float64(1 << 60),
		"beyond": json.Number("123456789012345678901234567890"), "small": 7.0,
	}
	must(t, durable.Add(t.Context(), agentmemory.NewToolCallResultMemoryItem(&llms.ToolCallResult{Result: data})))
	must(t, durable.Add(t.Context(), agentmemory.NewGenericMemoryItem(data)))
	found := retrieve(t, durable)
	equal(t, "the result", found[0].GetContent(), any(&llms.ToolCallResult{Result: data}))
	equal(t, "the content", found[1].GetContent(), any(data))
}

// All fields of a message are returned, also those that the server has no field for.
func TestEveryFieldOfAMessageComesBack(t *testing.T) {
	durable := agentgo.NewMemory(newClient(t))
	empty, odd, long := "", "Ada\nLovelace", strings.Repeat("n", 1025)
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	messages := []*llms.Message{
		{},
		{Parts: []llms.Part{}, Timestamp: at},
		{MessageId: "m-1", Creator: llms.MessageCreator{Role: llms.MessageRoleUser, Name: &empty}},
		{MessageId: odd, Creator: llms.MessageCreator{Role: "developer", Name: &odd}},
		{MessageId: long, Creator: llms.MessageCreator{Role: "a\x00b", Name: &long}},
		{Model: llms.ModelId{Provider: "openai", ID: "gpt-5"}, Timestamp: at.Add(time.Microsecond)},
		{Model: llms.ModelId{Provider: llms.ModelProvider(odd), ID: long}, Timestamp: at.Add(time.Nanosecond)},
		{Model: llms.ModelId{ID: "own"}, Timestamp: time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)},
		{Timestamp: time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)},
	}
	for _, message := range messages {
		must(t, durable.Add(t.Context(), agentmemory.NewChatMessageMemoryItem(message)))
	}
	for index, item := range retrieve(t, durable) {
		equal(t, fmt.Sprintf("message %d", index), item.GetContent(), any(messages[index]))
		equal(t, "its time", item.GetCreatedAt(), messages[index].Timestamp)
	}
}

// Times are returned to the nanosecond, with their offset, but without the name of the location and the
// monotonic clock.
func TestTimes(t *testing.T) {
	durable := agentgo.NewMemory(newClient(t))
	now := time.Now()
	east := time.Date(2026, 3, 4, 5, 6, 7, 89, time.FixedZone("east", 5*3600+1800))
	for _, at := range []time.Time{now, east} {
		message := &llms.Message{Timestamp: at}
		must(t, durable.Add(t.Context(), agentmemory.NewChatMessageMemoryItem(message)))
	}
	found := retrieve(t, durable)
	for index, at := range []time.Time{now, east} {
		if got := found[index].GetCreatedAt(); !got.Equal(at) {
			t.Errorf("%v came back as %v", at, got)
		}
	}
	_, offset := found[1].GetCreatedAt().Zone()
	equal(t, "the offset", offset, 5*3600+1800)
}

// Items keep their ids, also those that the server would refuse.
func TestIDs(t *testing.T) {
	durable := agentgo.NewMemory(newClient(t))
	ids := []agentmemory.MemoryItemId{"own", "", "a\nb", agentmemory.MemoryItemId(strings.Repeat("i", 129)), "été 🚆"}
	for _, id := range ids {
		must(t, durable.Add(t.Context(), &remark{id: id, content: "tea"}))
	}
	for index, item := range retrieve(t, durable) {
		equal(t, "the id", item.GetId(), ids[index])
	}
}

// Other clients read an agent's items as items of their kinds.
func TestOthersReadWhatAnAgentWrote(t *testing.T) {
	client := newClient(t)
	durable := agentgo.NewMemory(client)
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	call := &llms.ToolCall{ToolCallId: "c", Name: "trains", Arguments: map[string]any{"to": "Lyon"}}
	message := llms.NewAssistantMessage("m", llms.ModelId{Provider: "openai", ID: "gpt-5"}, "I will look.", call)
	message.Timestamp = at
	result := &llms.ToolCallResult{ToolCallId: "c", Name: "trains", Result: map[string]any{"at": "12:04"}}
	for _, item := range []agentmemory.MemoryItem{
		agentmemory.NewChatMessageMemoryItem(message),
		agentmemory.NewToolCallResultMemoryItem(result),
		agentmemory.NewGenericMemoryItem("Ada likes tea"),
		agentmemory.NewGenericMemoryItem(map[string]int{"cups": 3}),
		agentmemory.NewGenericMemoryItem([]int{1, 2}),
	} {
		must(t, durable.Add(t.Context(), item))
	}
	want := []any{
		&clientllms.Message{
			MessageId: "m",
			Creator:   clientllms.Creator{Role: clientllms.RoleAssistant},
			Model:     &clientllms.Model{Provider: "openai", ID: "gpt-5"},
			Parts: []clientllms.Part{
				&clientllms.TextPart{Text: "I will look."},
				&clientllms.ToolCall{ToolCallId: "c", Name: "trains", Arguments: map[string]any{"to": "Lyon"}},
			},
			Timestamp: at,
		},
		&clientllms.ToolCallResult{ToolCallId: "c", Name: "trains", Result: map[string]any{"at": "12:04"}},
		"Ada likes tea",
		map[string]any{"cups": 3.0},
		map[string]any{"content": []any{1.0, 2.0}},
	}
	index := 0
	for item, err := range client.ListItems(t.Context()) {
		must(t, err)
		equal(t, fmt.Sprintf("item %d", index), item.Content, want[index])
		index++
	}
}

// An agent can use items that other clients wrote.
func TestAnAgentReadsWhatOthersWrote(t *testing.T) {
	client := newClient(t)
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	unloaded := int64(-1)
	message := clientllms.NewUserMessage("Ada likes tea")
	message.Timestamp = time.Time{}
	message.Parts = append(message.Parts, &clientllms.BinaryPart{MIMEType: "a/b", Content: []byte("abc")},
		&clientllms.BinaryPart{ContentLength: &unloaded})
	for _, content := range []any{
		message, "tea", map[string]any{"cups": 3.0},
		&clientllms.ToolCallResult{Name: "search", Result: "found"},
		&clientllms.ToolCallResult{Name: "search", Result: "no such page", IsError: true},
	} {
		_, err := client.AddItem(t.Context(), &memory.Item{
			Content: content, CreateTime: at, Metadata: map[string]any{"agentgo": "something else"},
		})
		must(t, err)
	}
	found := retrieve(t, agentgo.NewMemory(client))
	want := []any{
		&llms.Message{
			Creator: llms.MessageCreator{Role: llms.MessageRoleUser},
			Parts: []llms.Part{
				&llms.TextPart{Text: "Ada likes tea"},
				&llms.BinaryPart{MIMEType: "a/b", Content: []byte("abc"), ContentLength: 3},
				&llms.BinaryPart{ContentLength: -1},
			},
			Timestamp: at,
		},
		"tea", map[string]any{"cups": 3.0},
		&llms.ToolCallResult{Name: "search", Result: map[string]any{"result": "found"}},
		&llms.ToolCallResult{Name: "search", Result: map[string]any{"error": "no such page"}},
	}
	for index, item := range found {
		equal(t, fmt.Sprintf("item %d", index), item.GetContent(), want[index])
		equal(t, "its time", item.GetCreatedAt(), at)
		_, speaks := item.AsMessage()
		equal(t, "that it is a message", speaks, reflect.TypeOf(want[index]).Kind() == reflect.Pointer)
	}
}

// An item that another client has changed is returned with the change.
func TestAnAgentReadsWhatOthersChanged(t *testing.T) {
	client := newClient(t)
	durable := agentgo.NewMemory(client)
	packed := &llms.Message{
		Parts:     []llms.Part{&llms.TextPart{Text: strings.Repeat("long ", 20_000)}, &llms.DataPart{}},
		Timestamp: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC),
	}
	item := agentmemory.NewChatMessageMemoryItem(packed)
	must(t, durable.Add(t.Context(), item))
	changed := clientllms.NewUserMessage("short")
	changed.Timestamp = time.Date(2026, 4, 5, 6, 7, 8, 0, time.UTC)
	_, err := client.Update(t.Context(), &memory.Item{ID: memory.MemoryItemId(item.GetId()), Content: changed})
	must(t, err)
	message, _ := retrieve(t, durable)[0].AsMessage()
	equal(t, "its parts", message.Parts, []llms.Part{&llms.TextPart{Text: "short"}})
	equal(t, "its time", message.Timestamp, changed.Timestamp)
}

// Items come back in the types of agent-go in which they were added.
func TestItemsHaveTheTypesInWhichTheyWereAdded(t *testing.T) {
	durable := agentgo.NewMemory(newClient(t))
	result := &llms.ToolCallResult{ToolCallId: "c", Name: "trains", Result: map[string]any{"at": "12:04"}}
	added := []agentmemory.MemoryItem{
		agentmemory.NewChatMessageMemoryItem(llms.NewUserMessage("I like tea.")),
		agentmemory.NewToolCallResultMemoryItem(result),
		agentmemory.NewGenericMemoryItem("Ada likes tea"),
		agentmemory.NewGenericMemoryItem(map[string]any{"cups": 3.0}),
		agentmemory.NewGenericMemoryItem([]any{1.0, "two"}),
		agentmemory.NewGenericMemoryItem(nil),
		agentmemory.NewGenericMemoryItem(strings.Repeat("long ", 20_000)),
		agentmemory.NewGenericMemoryItem(llms.NewUserMessage("not said")),
		agentmemory.NewGenericMemoryItem(result),
	}
	for _, item := range added {
		must(t, durable.Add(t.Context(), item))
	}
	found := retrieve(t, durable)
	for index, item := range added {
		equal(t, fmt.Sprintf("the type of item %d", index), reflect.TypeOf(found[index]), reflect.TypeOf(item))
	}
	equal(t, "the items", views(found), views(added))
}
