package memory

import (
	"context"
	"iter"
	"time"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// QuarantineDecision is the decision on a write in quarantine.
type QuarantineDecision string

// Decisions on a write in quarantine.
const (
	// ReleaseQuarantined applies the write.
	ReleaseQuarantined QuarantineDecision = "release"
	// DeleteQuarantined deletes the write for good.
	DeleteQuarantined QuarantineDecision = "delete"
)

// QuarantinedWrite is a write that the server's write policy put into quarantine: all items of one call.
type QuarantinedWrite struct {
	// ID of the write in quarantine.
	ID string
	// Reason that the policy gave.
	Reason string
	// CreateTime is when the server received it.
	CreateTime time.Time
	// ExpireTime is when it is deleted without a review.
	ExpireTime time.Time
	// Items as they would be written, with their provenance and without embeddings.
	Items []*Item
}

// ReviewedWrite is the result of [Client.ReviewQuarantined].
type ReviewedWrite struct {
	// ItemCount is how many items were written; 0 if the write was deleted.
	ItemCount int
	// Revision of the namespace afterwards.
	Revision int64
	// Degraded is what the server could not do, such as embedding the texts.
	Degraded []Degradation
}

// ListQuarantined yields the writes to the client's namespace that are in quarantine, oldest first;
// pages are fetched as needed. It takes [WithEntriesPerPage].
func (c *Client) ListQuarantined(ctx context.Context, options ...ListOption) iter.Seq2[QuarantinedWrite, error] {
	return paged(func(token string) ([]QuarantinedWrite, string, error) {
		preview, pageSize, err := listSettingsFrom(options)
		if err != nil {
			return nil, "", err
		}
		if preview {
			return nil, "", invalidArgument("include_preview", "writes in quarantine have no previews")
		}
		response, err := invoke(ctx, c, c.admin.ListQuarantined, &memoryv1.ListQuarantinedRequest{
			Namespace: c.namespace, PageSize: pageSize, PageToken: token,
		})
		var writes []QuarantinedWrite
		for _, write := range response.GetWrites() {
			writes = append(writes, QuarantinedWrite{
				ID:         write.GetId(),
				Reason:     write.GetReason(),
				CreateTime: timeTo(write.GetCreateTime()),
				ExpireTime: timeTo(write.GetExpireTime()),
				Items:      itemsTo(write.GetItems()),
			})
		}
		return writes, response.GetNextPageToken(), err
	})
}

// ReviewQuarantined releases or deletes a write of the client's namespace that is in quarantine. A
// released write is applied as if it were made now, with its original provenance. It is never retried.
//
// It returns [ErrNotFound] if the write is not in quarantine, or no longer there, [ErrAlreadyExists] if
// an item with its id was written meanwhile, and [ErrConflict] if the items it changes were changed
// meanwhile. In the last two cases it stays in quarantine.
func (c *Client) ReviewQuarantined(
	ctx context.Context, id string, decision QuarantineDecision,
) (*ReviewedWrite, error) {
	number, err := enumFrom[memoryv1.QuarantineDecision](
		memoryv1.QuarantineDecision_value, "QUARANTINE_DECISION_", decision, "decision",
	)
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.admin.ReviewQuarantined, &memoryv1.ReviewQuarantinedRequest{
		Namespace: c.namespace, Id: id, Decision: number,
	})
	if err != nil {
		return nil, err
	}
	return &ReviewedWrite{
		ItemCount: int(response.GetItemCount()),
		Revision:  response.GetRevision(),
		Degraded:  degradedTo(response.GetDegraded()),
	}, nil
}
