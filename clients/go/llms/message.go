// Package llms has the messages between people, language models and tools: their parts, tool calls and
// tool results.
//
// Data are JSON values with the types of encoding/json. A value may be anything that encoding/json
// can write; a memory returns it as encoding/json would read it: numbers as float64, objects as
// map[string]any, lists as []any. The server stores numbers as doubles, so integers beyond 2^53 are
// refused: send them as strings.
package llms

import (
	"strings"
	"time"
)

// Role of the author of a message.
type Role string

// The roles. A memory refuses a message without a role.
const (
	RoleSystem    Role = "system"    // Instructions and context.
	RoleUser      Role = "user"      // The human, or the agent that stands in for one.
	RoleAssistant Role = "assistant" // The model.
	RoleTool      Role = "tool"      // A tool.
)

// Creator is the author of the message.
type Creator struct {
	// Role of the author. Required.
	Role Role
	// Name of the author, such as "Ada". Nil: not given.
	Name *string
}

// Model names a language model.
type Model struct {
	// Provider of the model, such as "openai". Empty: not given.
	Provider string
	// ID of the model at its provider, such as "gpt-5". Empty: not given.
	ID string
}

// Message is one message of a conversation with all its parts.
type Message struct {
	// MessageId is the writer's id for the message. Empty: none.
	MessageId string
	// Creator is the author of the message.
	Creator Creator
	// Model that wrote the message. Nil: none, or unknown.
	Model *Model
	// Parts of the message, in order. At most 256.
	Parts []Part
	// Timestamp is the message's own time, to the microsecond. Zero: none.
	Timestamp time.Time
}

// NewMessage makes a message with the current time.
func NewMessage(role Role, parts ...Part) *Message {
	return &Message{Creator: Creator{Role: role}, Parts: parts, Timestamp: now()}
}

// NewSystemMessage makes a message with instructions, with the current time.
func NewSystemMessage(text string) *Message {
	return NewMessage(RoleSystem, &TextPart{Text: text})
}

// NewUserMessage makes a message of a user, with the current time.
func NewUserMessage(text string) *Message {
	return NewMessage(RoleUser, &TextPart{Text: text})
}

// NewAssistantMessage makes a message of a model, with the current time: its text, if that is not
// empty, and the tools that it calls.
func NewAssistantMessage(text string, calls ...*ToolCall) *Message {
	message := NewMessage(RoleAssistant)
	if text != "" {
		message.Parts = append(message.Parts, &TextPart{Text: text})
	}
	for _, call := range calls {
		message.Parts = append(message.Parts, call)
	}
	return message
}

// NewToolCallResultMessage makes a message of a tool, with the current time.
func NewToolCallResultMessage(result *ToolCallResult) *Message {
	return NewMessage(RoleTool, result)
}

// Text returns the text parts, each on its own lines.
func (m *Message) Text() string {
	var texts []string
	for _, part := range m.Parts {
		if text, ok := part.(*TextPart); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// now returns the time as a memory stores it, so that a message is returned with the time it was made with.
func now() time.Time {
	return time.Now().UTC().Truncate(time.Microsecond)
}
