package memory

import (
	"context"
	"time"

	"github.com/memory-service/memory-service/clients/go/llms"
)

// Memory keeps what was said and what tools returned, and finds it again. A [*Client] is one, and
// so is what [NewInMemoryMemory] makes.
type Memory interface {
	MemoryRetriever
	// Add writes one item.
	Add(ctx context.Context, memory MemoryItem) error
	// Reset removes everything.
	Reset() error
}

// MemoryRetriever finds what was added.
type MemoryRetriever interface {
	// Retrieve returns items; without options all of them, in the order in which they were added.
	Retrieve(ctx context.Context, options ...MemoryRetrieveOption) ([]MemoryItem, error)
}

// MemoryItem is one thing remembered. [*Item] is one with everything that the server keeps; an
// implementation of your own can be added as well, see [NewItem].
type MemoryItem interface {
	// GetId returns what names the item. Empty: it is given an id when it is added.
	GetId() MemoryItemId
	// GetContent returns what is remembered.
	GetContent() any
	// GetCreatedAt returns when it happened. The zero time: when it is added.
	GetCreatedAt() time.Time
	// AsMessage returns the item as a message for a language model. False: it is none.
	AsMessage() (*llms.Message, bool)
}

// MemoryItemId names an item inside its namespace.
type MemoryItemId string

// AsMessages returns the items that are messages, as messages, in their order.
func AsMessages(items []MemoryItem) []*llms.Message {
	var messages []*llms.Message
	for _, item := range items {
		if message, ok := item.AsMessage(); ok && message != nil {
			messages = append(messages, message)
		}
	}
	return messages
}
