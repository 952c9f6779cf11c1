package memory

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

const exportGiveUpAfter = time.Minute

// Export yields every item and every state entry of the namespace, as *[Item] and *[StateEntry], ordered
// by revision. A broken stream resumes where it broke, unless the server is unavailable for longer than
// [WithGiveUpAfter], by default one minute. To continue an earlier export, pass the revision of its last
// record, less one, to [WithAfterRevision].
//
// It ends with an error, yielded once, that is [ErrNotFound] if nothing was ever written to the
// namespace. It takes [WithAfterRevision], [WithGiveUpAfter] and [WithExportedEmbeddings].
func (c *Client) Export(ctx context.Context, options ...StreamOption) iter.Seq2[Record, error] {
	settings := &streamSettings{giveUpAfter: exportGiveUpAfter}
	apply(settings, options)
	if settings.heartbeatInterval != nil {
		return failed[Record](invalidArgument("heartbeat_interval", "an export takes no WithHeartbeatInterval: it has no heartbeats"))
	}
	from := resumption{position: settings.afterRevision, giveUpAfter: settings.giveUpAfter}
	return resumed(ctx, from, func(after *int64) iter.Seq2[event[Record], error] {
		request := &memoryv1.ExportRequest{
			Namespace: c.namespace, IncludeEmbedding: settings.includeEmbeddings,
		}
		if after != nil {
			request.AfterRevision = *after
		}
		return events(stream(ctx, c, c.memories.Export, request), recordEvent)
	})
}

func recordEvent(response *memoryv1.ExportResponse) event[Record] {
	received := event[Record]{revision: response.GetRevision()}
	switch record := response.GetRecord().(type) {
	case *memoryv1.ExportResponse_Item:
		received.value = itemTo(record.Item)
		received.key = fmt.Sprintf("item %q %d", record.Item.GetId(), record.Item.GetRevision())
	case *memoryv1.ExportResponse_State:
		received.value = entryTo(record.State)
		received.key = fmt.Sprintf("state %q %d", record.State.GetKey(), record.State.GetRevision())
	default:
		received.isHeartbeat = true
	}
	return received
}

// failed yields only an error.
func failed[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, err)
	}
}
