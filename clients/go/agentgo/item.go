package agentgo

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	agentmemory "github.com/oopslink/agent-go/pkg/core/memory"
	agentllms "github.com/oopslink/agent-go/pkg/support/llms"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/llms"
)

// form is the form in which an item was stored. The plain form, which is empty: a message as a message, a
// tool's result as a tool's result, a text as a text, an object as data.
type form string

const (
	// formDated: a message in an item whose time differs from the message's.
	formDated form = "dated"
	// formResult: a tool's result, packed as the one part of a message.
	formResult form = "result"
	// formContent: some other content, in the field contentField of data; if packed, the data are the only
	// part of a message.
	formContent form = "content"
	// formSpeaking: some other content that also has a message: the message, and after its own parts the
	// content, as a tool's result or as data with the field contentField.
	formSpeaking form = "speaking"
)

const contentField = "content"

// item is returned for everything that none of agent-go's own items can hold.
type item struct {
	id        agentmemory.MemoryItemId
	content   any
	createdAt time.Time
	message   *agentllms.Message
}

func (i *item) GetId() agentmemory.MemoryItemId       { return i.id }
func (i *item) GetContent() any                       { return i.content }
func (i *item) GetCreatedAt() time.Time               { return i.createdAt }
func (i *item) AsMessage() (*agentllms.Message, bool) { return i.message, i.message != nil }

// fromAgent returns an item in the server's form, with the given id, or with one from the server if the
// given one is not valid.
func fromAgent(source agentmemory.MemoryItem, id string) (*memory.Item, error) {
	remarks := &note{}
	content, err := remarks.content(source)
	if err != nil {
		return nil, err
	}
	kept := &memory.Item{Content: content, CreateTime: source.GetCreatedAt()}
	if _, isMessage := content.(*llms.Message); !isMessage || remarks.Form != "" {
		if remarks.CreatedAt, err = timeNote(kept.CreateTime); err != nil {
			return nil, err
		}
	}
	if id != "" && isName(id, idBytesMax) {
		kept.ID = memory.MemoryItemId(id)
	} else {
		own := string(source.GetId())
		remarks.ID = &own
	}
	kept.Metadata, err = remarks.metadata()
	return kept, err
}

// content returns the content of an item in the server's form.
func (n *note) content(source agentmemory.MemoryItem) (any, error) {
	message, speaks := source.AsMessage()
	speaks = speaks && message != nil
	switch content := source.GetContent().(type) {
	case *agentllms.Message:
		if content != nil && (!speaks || reflect.DeepEqual(message, content)) {
			n.Silent = !speaks
			if n.Silent || !content.Timestamp.Equal(source.GetCreatedAt()) {
				n.Form = formDated
			}
			return n.message(content)
		}
	case *agentllms.ToolCallResult:
		if content != nil && (!speaks || reflect.DeepEqual(message, toolMessage(content, source.GetCreatedAt()))) {
			n.Silent = !speaks
			return n.alone(formResult, content)
		}
	}
	if speaks {
		return n.speaking(source.GetContent(), message)
	}
	return n.other(source.GetContent())
}

func toolMessage(result *agentllms.ToolCallResult, at time.Time) *agentllms.Message {
	return agentllms.NewToolCallResultMessage(result, at)
}

// alone returns a part that is the whole content of an item; if packed, it is the only part of a message.
func (n *note) alone(packed form, part agentllms.Part) (any, error) {
	piece, err := n.part(0, part)
	if err != nil {
		return nil, err
	}
	switch piece := piece.(type) {
	case *llms.ToolCallResult:
		return piece, nil
	case *llms.DataPart:
		return piece.Data, nil
	}
	n.Form = packed
	return &llms.Message{Creator: llms.Creator{Role: llms.RoleTool}, Parts: []llms.Part{piece}}, nil
}

// speaking returns a message together with other content.
func (n *note) speaking(content any, message *agentllms.Message) (any, error) {
	extended := *message
	var last agentllms.Part = contentPart(content)
	if result, ok := content.(*agentllms.ToolCallResult); ok && result != nil {
		last = result
	}
	extended.Parts = append(slices.Clone(message.Parts), last)
	kept, err := n.message(&extended)
	n.Form, n.EmptyParts = formSpeaking, message.Parts != nil && len(message.Parts) == 0
	return kept, err
}

// other returns content that is neither a message nor a tool's result, as JSON.
func (n *note) other(content any) (any, error) {
	if text, ok := content.(string); ok && text != "" && isText(text) {
		return text, nil
	}
	value, err := toJSON(content)
	if err != nil {
		return nil, fmt.Errorf("the content: %w", err)
	}
	if data, ok := value.value.(map[string]any); ok && value.fits {
		return data, nil
	}
	n.Form = formContent
	return n.alone(formContent, contentPart(value.value))
}

func contentPart(content any) *agentllms.DataPart {
	return &agentllms.DataPart{Data: map[string]any{contentField: content}}
}

// toAgent returns an item in agent-go's form.
func toAgent(kept *memory.Item) (agentmemory.MemoryItem, error) {
	remarks := noteOf(kept.Metadata)
	found := &item{
		id:        agentmemory.MemoryItemId(noted(string(kept.ID), remarks.ID)),
		createdAt: notedTime(kept.CreateTime, remarks.CreatedAt),
	}
	switch content := kept.Content.(type) {
	case *llms.Message:
		message := remarks.agentMessage(content, kept.CreateTime)
		if remarks.Form == "" {
			return chatItem(found.id, message)
		}
		found.hold(message, remarks)
	case *llms.ToolCallResult:
		result := agentResult(content)
		found.content, found.message = result, toolMessage(result, found.createdAt)
	case map[string]any:
		found.content = content
		if remarks.Form == formContent {
			found.content = content[contentField]
		}
	default:
		found.content = content
	}
	if remarks.Silent {
		found.message = nil
	}
	return found.own(), nil
}

// hold sets the content that was stored as a message but is not only a message.
func (i *item) hold(message *agentllms.Message, remarks *note) {
	i.content, i.message = message, message
	last := len(message.Parts) - 1
	if last < 0 || remarks.Form == formDated {
		return
	}
	switch part := message.Parts[last].(type) {
	case *agentllms.ToolCallResult:
		i.content = part
		if remarks.Form == formResult {
			i.message = toolMessage(part, i.createdAt)
		}
	case *agentllms.DataPart:
		i.content = part.Data[contentField]
		if remarks.Form == formContent {
			i.message = nil
		}
	}
	if remarks.Form == formSpeaking {
		message.Parts = message.Parts[:last:last]
		if last == 0 && !remarks.EmptyParts {
			message.Parts = nil
		}
	}
}

// chatItem makes one of agent-go's own items with a given id, which only its codec can do.
func chatItem(id agentmemory.MemoryItemId, message *agentllms.Message) (agentmemory.MemoryItem, error) {
	text, err := json.Marshal(map[string]any{"id": id, "type": "chat_message", "content": struct{}{}})
	if err != nil {
		return nil, err
	}
	made, err := agentmemory.NewJsonCodec().Decode(text)
	if err != nil {
		return nil, err
	}
	*made.GetContent().(*agentllms.Message) = *message
	return made, nil
}
