package memory

import (
	"context"
	"fmt"
	"iter"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// ChangeType is the type of a change. A newer server may send other types.
type ChangeType string

// Types of changes to a namespace.
const (
	ItemAdded    ChangeType = "item_added"
	ItemUpdated  ChangeType = "item_updated"
	ItemDeleted  ChangeType = "item_deleted"
	ItemExpired  ChangeType = "item_expired"
	ItemsReset   ChangeType = "reset" // Everything was removed from the namespace.
	StateSaved   ChangeType = "state_saved"
	StateDeleted ChangeType = "state_deleted"
	StateExpired ChangeType = "state_expired"
	StateCleared ChangeType = "state_cleared" // Every state key was removed.
)

// Change is one change to a namespace.
type Change struct {
	// Type of the change.
	Type ChangeType
	// Revision of the change.
	Revision int64
	// ItemID of the item that changed. Empty: no item changed.
	ItemID MemoryItemId
	// Item after this change, without its embedding. Nil: a later change, which follows, replaced or
	// removed it.
	Item *Item
	// StateKey of the state that changed. Empty: no state changed.
	StateKey string
	// State after this change, with its value. Nil: as for Item.
	State *StateEntry
}

// Watch yields every change to the namespace until the caller stops. A stream that breaks because the
// server is unavailable resumes where it broke, with no change lost or repeated. The namespace need not
// exist yet.
//
// It ends with an error, yielded once: that of ctx, or [ErrUnavailable] if the server cannot be reached
// at first or is unavailable for longer than [WithGiveUpAfter]. It takes [WithAfterRevision],
// [WithHeartbeatInterval] and [WithGiveUpAfter].
func (c *Client) Watch(ctx context.Context, options ...StreamOption) iter.Seq2[Change, error] {
	settings := &streamSettings{}
	apply(settings, options)
	if settings.includeEmbeddings {
		return failed[Change](invalidArgument("include_embedding", "a watch takes no WithExportedEmbeddings: changes have no embeddings"))
	}
	from := resumption{position: settings.afterRevision, giveUpAfter: settings.giveUpAfter}
	return resumed(ctx, from, func(after *int64) iter.Seq2[event[Change], error] {
		request := &memoryv1.WatchRequest{
			Namespace:         c.namespace,
			AfterRevision:     after,
			HeartbeatInterval: settings.heartbeatInterval,
		}
		return events(stream(ctx, c, c.memories.Watch, request), changeEvent)
	})
}

// events converts the responses of a stream as they come.
func events[R, T any](responses iter.Seq2[*R, error], convert func(*R) event[T]) iter.Seq2[event[T], error] {
	return func(yield func(event[T], error) bool) {
		for response, err := range responses {
			var converted event[T]
			if err == nil {
				converted = convert(response)
			}
			if !yield(converted, err) {
				return
			}
		}
	}
}

func changeEvent(response *memoryv1.WatchResponse) event[Change] {
	change := response.GetChange()
	return event[Change]{
		value: Change{
			Type:     enumTo[ChangeType](change.GetType(), "CHANGE_TYPE_"),
			Revision: change.GetRevision(),
			ItemID:   MemoryItemId(change.GetItemId()),
			Item:     itemTo(change.GetItem()),
			StateKey: change.GetStateKey(),
			State:    entryTo(change.GetState()),
		},
		isHeartbeat: change == nil,
		revision:    response.GetRevision(),
		key: fmt.Sprintf("%d %d %q %q",
			change.GetRevision(), change.GetType(), change.GetItemId(), change.GetStateKey()),
	}
}
