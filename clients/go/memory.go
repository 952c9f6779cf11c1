package memory

import (
	"context"
	"time"

	"github.com/memory-service/memory-service/clients/go/llms"
)

// Memory stores and finds messages and tool results. [*Client] and [*InMemoryMemory] implement it.
type Memory interface {
	MemoryRetriever
	// Add writes one item.
	Add(ctx context.Context, memory MemoryItem) error
	// Reset removes everything.
	Reset() error
}

// MemoryRetriever finds added items.
type MemoryRetriever interface {
	// Retrieve returns items; without options all of them, in the order in which they were added.
	Retrieve(ctx context.Context, options ...MemoryRetrieveOption) ([]MemoryItem, error)
}

// MemoryItem is one remembered item. [*Item] has all fields that the server stores; you can also add your
// own implementations, see [NewItem].
type MemoryItem interface {
	// GetId returns the item's id. Empty: it gets one when it is added.
	GetId() MemoryItemId
	// GetContent returns the content.
	GetContent() any
	// GetCreatedAt returns when it happened. The zero time: when it is added.
	GetCreatedAt() time.Time
	// AsMessage returns the item as a message for a language model. False: it is not a message.
	AsMessage() (*llms.Message, bool)
}

// MemoryItemId identifies an item within its namespace.
type MemoryItemId string

// AsMessages returns the items that are messages, as messages, in order.
func AsMessages(items []MemoryItem) []*llms.Message {
	var messages []*llms.Message
	for _, item := range items {
		if message, ok := item.AsMessage(); ok && message != nil {
			messages = append(messages, message)
		}
	}
	return messages
}
