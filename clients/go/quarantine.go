package memory

import (
	"context"
	"iter"
	"time"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// QuarantineDecision says what becomes of a write in quarantine.
type QuarantineDecision string

// What can become of a write in quarantine.
const (
	// ReleaseQuarantined: it takes place.
	ReleaseQuarantined QuarantineDecision = "release"
	// DeleteQuarantined: it is forgotten, for good.
	DeleteQuarantined QuarantineDecision = "delete"
)

// QuarantinedWrite is a write that the server's write policy put aside. What was one call is one write.
type QuarantinedWrite struct {
	// ID of the write in quarantine.
	ID string
	// Reason that the policy gave.
	Reason string
	// CreateTime is when it came.
	CreateTime time.Time
	// ExpireTime from which on it is removed without a review.
	ExpireTime time.Time
	// Items as they would be written, with their provenance and without embeddings.
	Items []*Item
}

// ReviewedWrite tells what became of a write that was in quarantine.
type ReviewedWrite struct {
	// ItemCount is how many items were written; 0 where it was deleted.
	ItemCount int
	// Revision of the namespace afterwards.
	Revision int64
	// Degraded is what the server could not do, such as embedding the texts.
	Degraded []Degradation
}

// ListQuarantined yields the writes of the client's namespace that the server's write policy put into
// quarantine, the oldest first; pages are fetched as they are needed. It takes [WithEntriesPerPage].
func (c *Client) ListQuarantined(ctx context.Context, options ...ListOption) iter.Seq2[QuarantinedWrite, error] {
	return paged(func(token string) ([]QuarantinedWrite, string, error) {
		preview, pageSize, err := listSettingsFrom(options)
		if err != nil {
			return nil, "", err
		}
		if preview {
			return nil, "", invalidArgument("", "writes in quarantine have no previews")
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

// ReviewQuarantined releases a write of the client's namespace out of quarantine, which then takes place
// as if it came now, with the provenance that it came with; or it deletes it. It is tried once.
//
// It is [ErrNotFound] when it is not in quarantine, or no more; [ErrAlreadyExists] when an item of its id
// was written meanwhile, and [ErrAborted] when what it changes was changed meanwhile: then it stays.
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
