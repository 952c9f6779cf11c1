package agentgo_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	agentmemory "github.com/oopslink/agent-go/pkg/core/memory"
	"github.com/oopslink/agent-go/pkg/support/llms"
)

// view is an item of agent-go in a form that can be compared: times in UTC without the monotonic clock, and
// data as JSON, which has one kind of number.
type view struct {
	ID        agentmemory.MemoryItemId
	Content   any
	CreatedAt time.Time
	Message   *llms.Message
	Speaks    bool
}

func viewOf(item agentmemory.MemoryItem) view {
	message, speaks := item.AsMessage()
	return view{item.GetId(), plain(item.GetContent()), plainTime(item.GetCreatedAt()), plainMessage(message), speaks}
}

func views(items []agentmemory.MemoryItem) []view {
	seen := make([]view, len(items))
	for index, item := range items {
		seen[index] = viewOf(item)
	}
	return seen
}

func plainTime(at time.Time) time.Time { return at.UTC().Round(0) }

// plain returns a content in a form that can be compared.
func plain(content any) any {
	switch content := content.(type) {
	case *llms.Message:
		if content != nil {
			return plainMessage(content)
		}
	case *llms.ToolCallResult:
		if content != nil {
			return plainPart(content)
		}
	}
	return asJSON(content)
}

func plainMessage(message *llms.Message) *llms.Message {
	if message == nil {
		return nil
	}
	copied := *message
	copied.Timestamp = plainTime(message.Timestamp)
	if message.Parts != nil {
		copied.Parts = make([]llms.Part, len(message.Parts))
	}
	for index, part := range message.Parts {
		copied.Parts[index] = plainPart(part)
	}
	return &copied
}

func plainPart(part llms.Part) llms.Part {
	switch part := part.(type) {
	case *llms.DataPart:
		return &llms.DataPart{Data: plainMap(part.Data)}
	case *llms.ToolCall:
		return &llms.ToolCall{ToolCallId: part.ToolCallId, Name: part.Name, Arguments: plainMap(part.Arguments)}
	case *llms.ToolCallResult:
		return &llms.ToolCallResult{ToolCallId: part.ToolCallId, Name: part.Name, Result: plainMap(part.Result)}
	}
	return part
}

func plainMap(data map[string]any) map[string]any {
	if data == nil {
		return nil
	}
	return asJSON(data).(map[string]any)
}

func asJSON(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var read any
	if err := json.Unmarshal(text, &read); err != nil {
		panic(err)
	}
	return read
}

// shown writes a value for a human to compare.
func shown(value any) string {
	if text, err := json.MarshalIndent(value, "", " "); err == nil {
		return fmt.Sprintf("%#v\n%s", value, text)
	}
	return fmt.Sprintf("%#v", value)
}

// remark is a caller's own item type: it has content that is not a message, and also a message.
type remark struct {
	id      agentmemory.MemoryItemId
	content any
	at      time.Time
	message *llms.Message
}

func (r *remark) GetId() agentmemory.MemoryItemId { return r.id }
func (r *remark) GetContent() any                 { return r.content }
func (r *remark) GetCreatedAt() time.Time         { return r.at }
func (r *remark) AsMessage() (*llms.Message, bool) {
	return r.message, r.message != nil
}

// chance makes random items of all kinds.
type chance struct{ *rand.Rand }

func pick[T any](c chance, choices ...T) T { return choices[c.IntN(len(choices))] }

func (c chance) text() string {
	return pick(c, "", "tea", "Ada likes tea", "été 🚆 日本語", "a\x00b\n\t\"<&>\\", "  ", "9007199254740993", "\u2028")
}

func (c chance) name() string { return pick(c, "", "search", "get weather", "検索", "a/b:c.d-e_f") }

func (c chance) optional() *string {
	text := c.text()
	return pick(c, nil, &text)
}

func (c chance) time() time.Time {
	return pick(c,
		time.Time{},
		time.Now(),
		time.Now().UTC(),
		time.Now().Truncate(time.Microsecond).UTC(),
		time.Date(1815, 12, 10, 6, 30, 0, 123456789, time.FixedZone("", 7*3600)),
		time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Unix(c.Int64N(2e9), c.Int64N(1e9)).In(time.FixedZone("somewhere", -5400)),
	)
}

func (c chance) value(depth int) any {
	if depth > 0 && c.IntN(3) == 0 {
		if c.IntN(2) == 0 {
			return c.object(depth - 1)
		}
		list := []any{}
		for range c.IntN(4) {
			list = append(list, c.value(depth-1))
		}
		return list
	}
	return pick[any](c, nil, true, false, 0, -7, 1.5, 0.25, 1e300, 5e-324, 1<<53, int64(12), uint8(3), c.text(),
		[]string{"a", ""}, map[string]int{"one": 1}, struct {
			Name string `json:"name"`
		}{"Ada"}, []byte{1, 2, 255}, json.Number("2.50"), time.Unix(1, 2).UTC())
}

func (c chance) object(depth int) map[string]any {
	object := map[string]any{}
	for range c.IntN(4) {
		object[c.text()] = c.value(depth)
	}
	return object
}

func (c chance) maybeObject() map[string]any {
	return pick(c, nil, map[string]any{}, c.object(3), c.object(3))
}

func (c chance) part() llms.Part {
	switch c.IntN(5) {
	case 0:
		return &llms.TextPart{Text: c.text()}
	case 1:
		return &llms.DataPart{Data: c.maybeObject()}
	case 2:
		return c.binary()
	case 3:
		return &llms.ToolCall{ToolCallId: c.name(), Name: c.name(), Arguments: c.maybeObject()}
	}
	return c.result()
}

func (c chance) binary() *llms.BinaryPart {
	part := &llms.BinaryPart{
		Name: c.optional(), URL: c.optional(), MIMEType: pick(c, "", "image/png", "text/plain"),
		Content: pick(c, nil, []byte{}, []byte{0, 1, 254, 255}, []byte("hello")),
	}
	part.ContentLength = pick(c, -1, 0, int64(len(part.Content)), 1<<40)
	return part
}

func (c chance) result() *llms.ToolCallResult {
	return &llms.ToolCallResult{ToolCallId: c.name(), Name: c.name(), Result: c.maybeObject()}
}

func (c chance) message() *llms.Message {
	message := &llms.Message{
		MessageId: c.name(),
		Creator: llms.MessageCreator{
			Role: pick(c, llms.MessageRoleSystem, llms.MessageRoleUser, llms.MessageRoleAssistant,
				llms.MessageRoleTool, "developer", ""),
			Name: c.optional(),
		},
		Model:     pick(c, llms.ModelId{}, llms.ModelId{Provider: "openai", ID: "gpt-5"}, llms.ModelId{ID: "own"}),
		Parts:     pick(c, nil, []llms.Part{}),
		Timestamp: c.time(),
	}
	for range c.IntN(5) {
		message.Parts = append(message.Parts, c.part())
	}
	return message
}

func (c chance) content() any {
	return pick[any](c, c.text(), c.value(2), c.maybeObject(), c.message(), c.result(), (*llms.Message)(nil))
}

func (c chance) item(number int) agentmemory.MemoryItem {
	id := agentmemory.MemoryItemId(fmt.Sprintf("own-%d", number))
	switch c.IntN(6) {
	case 0, 1:
		return agentmemory.NewChatMessageMemoryItem(c.message())
	case 2:
		return agentmemory.NewToolCallResultMemoryItem(c.result())
	case 3:
		return agentmemory.NewGenericMemoryItem(c.content())
	case 4:
		return &remark{id: id, content: c.content(), at: c.time()}
	}
	message := c.message()
	content := c.content()
	if _, other := content.(*llms.Message); other || c.IntN(2) == 0 {
		content = message
	}
	return &remark{pick(c, id, ""), content, c.time(), message}
}
