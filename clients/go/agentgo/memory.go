package agentgo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"

	"github.com/oopslink/agent-go/pkg/commons/utils"
	agentmemory "github.com/oopslink/agent-go/pkg/core/memory"

	memory "github.com/memory-service/memory-service/clients/go"
)

// The longest id that the server takes, in bytes.
const idBytesMax = 128

// A server writes concurrent requests with one disk sync.
const concurrentDeletions = 16

// MemoryOption sets an option of a memory.
type MemoryOption func(*serverMemory)

// WithSession limits a memory to one conversation of the namespace, to which it adds and which it
// retrieves and resets. At most 256 bytes. Without it, a memory covers all conversations.
func WithSession(id string) MemoryOption {
	return func(m *serverMemory) { m.session = id }
}

// NewMemory returns an agent-go memory on a memory server, in the namespace of client. It replaces
// agent-go's NewSimpleMemory; the package documentation lists the differences. It is safe for concurrent
// use, and does not close the client.
//
// Its errors are those of the client, for errors.Is and errors.As, such as [memory.ErrUnavailable].
func NewMemory(client *memory.Client, options ...MemoryOption) agentmemory.Memory {
	made := &serverMemory{client: client}
	for _, option := range options {
		if option != nil {
			option(made)
		}
	}
	return made
}

type serverMemory struct {
	client    *memory.Client
	session   string
	unsettled unsettledAdds
}

// Add writes an item. When it returns, the item is on the server's disk.
//
// A failed Add may be repeated with the same item: if it did reach the server, the item is not added
// twice. An item that is added again after a success is stored twice, as in agent-go's own memory.
func (m *serverMemory) Add(ctx context.Context, item agentmemory.MemoryItem) error {
	if isMissing(item) {
		return refused("item", errors.New("it is missing"))
	}
	id := item.GetId()
	request := m.unsettled.take(id)
	err := m.write(ctx, item, request)
	// A failed precondition means that this request wrote the item, which has changed since.
	if err != nil && !errors.Is(err, memory.ErrFailedPrecondition) {
		m.unsettled.keep(id, request)
	}
	return err
}

func (m *serverMemory) write(ctx context.Context, item agentmemory.MemoryItem, request string) error {
	kept, err := fromAgent(item, string(item.GetId()))
	if err != nil {
		return refused("item", err)
	}
	kept.SessionID = m.session
	_, err = m.client.AddItem(ctx, kept, memory.WithRequestID(request))
	if kept.ID == "" || !errors.Is(err, memory.ErrAlreadyExists) {
		return err
	}
	if kept, err = fromAgent(item, ""); err != nil {
		return refused("item", err)
	}
	kept.SessionID = m.session
	_, err = m.client.AddItem(ctx, kept, memory.WithRequestID(request+"-again"))
	return err
}

// refused returns the error for an argument that this package cannot store.
func refused(field string, err error) error {
	return fmt.Errorf("agentgo: %w", &memory.Error{
		Code:     "INVALID_ARGUMENT",
		Reason:   memory.ReasonInvalidField,
		Field:    field,
		Message:  fmt.Sprintf("%s: %v", field, err),
		Metadata: map[string]string{"field": field},
	})
}

// isMissing reports that there is no item, also not in a pointer.
func isMissing(item agentmemory.MemoryItem) bool {
	value := reflect.ValueOf(item)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}

// Retrieve returns the newest items, the oldest of them first: at most limit, or all without a limit,
// fetched page by page.
func (m *serverMemory) Retrieve(
	ctx context.Context, options ...agentmemory.MemoryRetrieveOption,
) ([]agentmemory.MemoryItem, error) {
	wanted := agentmemory.NewMemoryRetrieveOptions()
	for _, option := range options {
		if option != nil {
			option(wanted)
		}
	}
	limit := memory.WithNoLimit()
	if wanted.Limit >= 0 && wanted.Limit <= math.MaxInt32 {
		limit = memory.WithMaxLimit(wanted.Limit)
	}
	found, err := m.client.RetrieveResults(ctx, limit, memory.WithSession(m.session))
	if err != nil {
		return nil, err
	}
	items := make([]agentmemory.MemoryItem, len(found.Results))
	for index, result := range found.Results {
		if items[index], err = toAgent(result.Item); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// Reset removes the items that Retrieve would return, one by one, and nothing else in the namespace, such
// as its state. Items that are added meanwhile may stay. If it fails, some items may already be removed;
// it may be called again.
func (m *serverMemory) Reset() error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ids := make(chan memory.MemoryItemId)
	var deleting sync.WaitGroup
	for range concurrentDeletions {
		deleting.Go(func() {
			for id := range ids {
				if _, err := m.client.Delete(ctx, id); err != nil && !errors.Is(err, memory.ErrNotFound) {
					cancel(err)
				}
			}
		})
	}
	m.sendIDs(ctx, cancel, ids)
	close(ids)
	deleting.Wait()
	return context.Cause(ctx)
}

// sendIDs sends the ids of all items of the memory, until ctx ends.
func (m *serverMemory) sendIDs(
	ctx context.Context, fail context.CancelCauseFunc, ids chan<- memory.MemoryItemId,
) {
	for item, err := range m.client.ListItems(ctx, memory.WithSession(m.session)) {
		if err != nil {
			fail(err)
			return
		}
		select {
		case ids <- item.ID:
		case <-ctx.Done():
			return
		}
	}
}

// Maximum number of failed adds to remember.
const unsettledMax = 1000

// unsettledAdds are failed adds whose items the server may or may not have: their request ids by the ids
// of their items. The server answers a repeated request without writing again.
type unsettledAdds struct {
	mutex    sync.Mutex
	requests map[agentmemory.MemoryItemId]string
}

// take returns the request id for adding an item.
func (u *unsettledAdds) take(id agentmemory.MemoryItemId) string {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if request, ok := u.requests[id]; ok {
		delete(u.requests, id)
		return request
	}
	return utils.GenerateUUID()
}

// keep remembers a failed add. If there are too many, it forgets one.
func (u *unsettledAdds) keep(id agentmemory.MemoryItemId, request string) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	if u.requests == nil {
		u.requests = map[agentmemory.MemoryItemId]string{}
	}
	if len(u.requests) == unsettledMax {
		for one := range u.requests {
			delete(u.requests, one)
			break
		}
	}
	u.requests[id] = request
}
