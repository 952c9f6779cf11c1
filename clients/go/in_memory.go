package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// InMemoryMemory keeps items in the memory of this process, without a server, for tests and short
// programs. It behaves like a [Client], except that queries, filter expressions, trust, sources and
// token budgets return [ErrUnsupported], and that it lacks the server's size limits. It is safe for
// concurrent use.
type InMemoryMemory struct {
	mutex    sync.RWMutex
	revision int64
	items    []*memoryv1.MemoryItem
	ids      map[string]bool
}

// NewInMemoryMemory makes an empty [InMemoryMemory].
func NewInMemoryMemory() Memory {
	return &InMemoryMemory{ids: map[string]bool{}}
}

// Add keeps a copy of an item, as [Client.Add] does.
func (m *InMemoryMemory) Add(ctx context.Context, memory MemoryItem) error {
	if err := contextError(ctx); err != nil {
		return err
	}
	item, err := NewItem(memory)
	if err != nil {
		return err
	}
	// Keep the same as the server: a copy, with times to the microsecond and data as JSON.
	kept, err := itemFrom(item, "item")
	if err != nil {
		return err
	}
	if err := checkContent(kept); err != nil {
		return err
	}
	if err := checkImportance(kept.Importance); err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.keep(proto.CloneOf(kept))
}

func contextError(ctx context.Context) error {
	if err := requireContext(ctx); err != nil {
		return err
	}
	return errorFrom(ctx.Err())
}

func checkImportance(importance *float64) error {
	// Not the other way round: a NaN is neither.
	if importance == nil || *importance >= 0 && *importance <= 1 {
		return nil
	}
	return invalidArgument("item.importance", "item.importance: must be 0 to 1")
}

func checkContent(item *memoryv1.MemoryItem) error {
	switch content := item.GetContent().(type) {
	case nil:
		return invalidArgument("item.content", "item.content: the item holds nothing")
	case *memoryv1.MemoryItem_Text:
		if content.Text == "" {
			return invalidArgument("item.text", "item.text: a text cannot be empty")
		}
	case *memoryv1.MemoryItem_ChatMessage:
		if content.ChatMessage.GetRole() == memoryv1.Role_ROLE_UNSPECIFIED {
			return invalidArgument("item.chat_message.role", "item.chat_message.role: it is not said who speaks")
		}
	}
	return nil
}

func (m *InMemoryMemory) keep(item *memoryv1.MemoryItem) error {
	now := time.Now()
	if item.Id == "" {
		item.Id = newUUID()
	}
	m.dropExpired(now)
	if m.ids[item.Id] {
		return &Error{
			Code:     "ALREADY_EXISTS",
			Reason:   ReasonItemAlreadyExists,
			Message:  fmt.Sprintf("there is an item %q already", item.Id),
			Metadata: map[string]string{"id": item.Id},
		}
	}
	if err := setExpiry(item, now); err != nil {
		return err
	}
	m.revision++
	item.Revision = m.revision
	item.UpdateTime = timeFrom(now)
	if item.CreateTime == nil {
		item.CreateTime = item.UpdateTime
	}
	m.items = append(m.items, item)
	m.ids[item.Id] = true
	return nil
}

// setExpiry turns a time to live into the time at which it ends.
func setExpiry(item *memoryv1.MemoryItem, now time.Time) error {
	if item.Ttl != nil {
		if item.ExpireTime != nil {
			return invalidArgument("item.ttl", "item.ttl: there is an expire_time as well")
		}
		if item.Ttl.AsDuration() <= 0 {
			return invalidArgument("item.ttl", "item.ttl: a time to live is positive")
		}
		item.ExpireTime, item.Ttl = timeFrom(now.Add(item.Ttl.AsDuration())), nil
	}
	if item.ExpireTime != nil && !item.ExpireTime.AsTime().After(now) {
		return invalidArgument("item.expire_time", "item.expire_time: it lies in the past")
	}
	return nil
}

func (m *InMemoryMemory) dropExpired(now time.Time) {
	m.items = slices.DeleteFunc(m.items, func(item *memoryv1.MemoryItem) bool {
		gone := hasExpired(item, now)
		if gone {
			delete(m.ids, item.Id)
		}
		return gone
	})
}

func hasExpired(item *memoryv1.MemoryItem, now time.Time) bool {
	return item.ExpireTime != nil && !item.ExpireTime.AsTime().After(now)
}

// Retrieve returns the newest items that the options want, the oldest of them first, as
// [Client.Retrieve] does without a query. The items are copies, of type [*Item].
func (m *InMemoryMemory) Retrieve(ctx context.Context, options ...MemoryRetrieveOption) ([]MemoryItem, error) {
	if err := contextError(ctx); err != nil {
		return nil, err
	}
	wanted := retrieveOptionsFrom(options)
	if err := wanted.checkWithoutSearch(); err != nil {
		return nil, err
	}
	m.mutex.RLock()
	defer m.mutex.RUnlock()
	found := []MemoryItem{}
	now := time.Now()
	for _, item := range slices.Backward(m.items) {
		if len(found) == wanted.Limit {
			break
		}
		if !hasExpired(item, now) && wanted.wants(item) {
			found = append(found, wanted.copyOf(item))
		}
	}
	slices.Reverse(found)
	return found, nil
}

// Reset removes everything.
func (m *InMemoryMemory) Reset() error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.items = nil
	clear(m.ids)
	m.revision++
	return nil
}

// checkWithoutSearch refuses what needs a server, and what a server refuses. Neighbours, explanations
// and counts of uses are taken: what Retrieve returns has no place for them.
func (o *MemoryRetrieveOptions) checkWithoutSearch() error {
	if _, err := o.toRetrieve(); err != nil {
		return err
	}
	if err := o.checkRanges(); err != nil {
		return err
	}
	if err := o.checkQuery(); err != nil {
		return err
	}
	switch {
	case o.Query != "" || o.QueryEmbedding != nil || len(o.Queries) > 0:
		return unsupported("query")
	case o.RefreshTTL:
		return unsupported("refresh_ttl")
	case o.WholeExchanges:
		return unsupported("whole_exchanges")
	case o.Filter != "":
		return unsupported("filter")
	case o.OrderBy != "":
		return unsupported("order_by")
	case o.Skip != 0:
		return unsupported("skip")
	case o.MaxTokens != nil:
		return unsupported("max_tokens")
	case o.MinTrust != nil:
		return unsupported("min_trust")
	case len(o.Sources) > 0:
		return unsupported("sources")
	}
	return nil
}

func (o *MemoryRetrieveOptions) checkRanges() error {
	switch {
	case o.Limit < -1:
		return invalidArgument("options.limit", "options.limit: must be -1 (no limit), 0 or more")
	case o.PageSize < 0:
		return invalidArgument("options.page_size", "options.page_size: must not be negative")
	case o.Skip < 0:
		return invalidArgument("options.skip", "options.skip: must not be negative")
	case o.ContextWindow < 0:
		return invalidArgument("options.context_window", "options.context_window: must not be negative")
	case o.MaxTokens != nil && *o.MaxTokens < 1:
		return invalidArgument("options.max_tokens", "options.max_tokens: must be positive")
	case !o.StartTime.IsZero() && !o.EndTime.IsZero() && o.EndTime.Before(o.StartTime):
		return invalidArgument("options.end_time", "options.end_time: is before start_time")
	}
	return nil
}

// checkQuery refuses what says how a query is answered where there is none.
func (o *MemoryRetrieveOptions) checkQuery() error {
	if o.Rerank && o.Query == "" {
		return invalidArgument("options.rerank", "options.rerank: only with a query text")
	}
	if o.Query != "" || o.QueryEmbedding != nil || len(o.Queries) > 0 {
		switch {
		case o.OrderBy != "":
			return invalidArgument("options.order_by", "options.order_by: cannot be given together with a query")
		case o.Skip != 0:
			return invalidArgument("options.skip", "options.skip: cannot be given together with a query")
		}
		return nil
	}
	switch {
	case o.MinScore != nil:
		return invalidArgument("options.min_score", "options.min_score: only with a query")
	case o.Mode != "":
		return invalidArgument("options.mode", "options.mode: only with a query")
	case o.Weights != nil:
		return invalidArgument("options.weights", "options.weights: only with a query")
	case o.MinRelevance != nil:
		return invalidArgument("options.min_relevance", "options.min_relevance: only with a query")
	case o.NeighbourWeight != nil:
		return invalidArgument("options.neighbour_weight", "options.neighbour_weight: only with a query")
	case o.TimeZone != "":
		return invalidArgument("options.time_zone", "options.time_zone: only with a query")
	case len(o.Namespaces) > 0:
		return invalidArgument("namespaces", "namespaces: only with a query")
	}
	return nil
}

func unsupported(feature string) error {
	return &Error{
		Code:     "UNIMPLEMENTED",
		Reason:   ReasonUnsupported,
		Message:  fmt.Sprintf("a memory without a server does not offer %q", feature),
		Metadata: map[string]string{"feature": feature},
	}
}

// wants reports whether an item without a service's kind passes the filters.
func (o *MemoryRetrieveOptions) wants(item *memoryv1.MemoryItem) bool {
	if o.SessionID != "" && item.SessionId != o.SessionID {
		return false
	}
	if len(o.Kinds) > 0 && !slices.Contains(o.Kinds, KindPlain) && !slices.Contains(o.Kinds, "") {
		return false
	}
	created := item.CreateTime.AsTime()
	if !o.StartTime.IsZero() && created.Before(o.StartTime) {
		return false
	}
	if !o.EndTime.IsZero() && !created.Before(o.EndTime) {
		return false
	}
	matching := maps.Clone(o.Labels)
	maps.DeleteFunc(matching, func(key, value string) bool {
		present, ok := item.Labels[key]
		return ok && present == value
	})
	return len(matching) == 0
}

func (o *MemoryRetrieveOptions) copyOf(item *memoryv1.MemoryItem) *Item {
	copied := itemTo(proto.CloneOf(item))
	if !o.IncludeEmbeddings {
		copied.Embedding = nil
	}
	return copied
}
