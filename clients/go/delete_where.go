package memory

import (
	"context"
	"time"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// DeleteConditions select the items that [Client.DeleteWhere] deletes: those that match all of them. At
// least one is required.
type DeleteConditions struct {
	// SessionID of the items. Empty: any.
	SessionID string
	// Labels that the items must have, all of them. Empty: any.
	Labels map[string]string
	// Kinds: only items of these kinds, which must be kinds of a conversation. Empty: all of those.
	Kinds []ItemKind
	// Filter is an expression that holds for the items, see [WithFilter]. Empty: none.
	Filter string
	// StartTime: items that happened at or after it. Zero: no limit.
	StartTime time.Time
	// EndTime: items that happened before it. Zero: no limit.
	EndTime time.Time
	// KeepDerived keeps what was made only from the items that match.
	KeepDerived bool
}

// DeleteWhere deletes all items that match the conditions, and what was made only from them, see
// [Client.Delete], and returns how many match. It deletes up to 10,000 items at a time, each of these parts
// as a whole. Items that are added meanwhile stay. Other documents and memories about users are deleted by [Client.DeleteDocument] and
// [Client.DeleteMemory].
//
// With an error it returns how many items it has deleted; call it again to delete the rest. It returns
// [ErrInvalidArgument] if there is no condition. It takes [WithDryRun], with which it only counts,
// [WithDerivedCount], and [WithRequestID], which is the id of the first part; the others get new ones.
func (c *Client) DeleteWhere(
	ctx context.Context, conditions DeleteConditions, options ...WriteOption,
) (deleted int64, err error) {
	settings, err := writeSettingsFrom(options, dryRunOption, derivedCountOption)
	if err != nil {
		return 0, err
	}
	kinds, err := kindsFrom(conditions.Kinds, "kinds")
	if err != nil {
		return 0, err
	}
	request := &memoryv1.DeleteWhereRequest{
		Namespace:   c.namespace,
		SessionId:   conditions.SessionID,
		Labels:      conditions.Labels,
		Kinds:       kinds,
		Filter:      conditions.Filter,
		StartTime:   timeFrom(conditions.StartTime),
		EndTime:     timeFrom(conditions.EndTime),
		DryRun:      settings.dryRun,
		RequestId:   settings.requestID,
		KeepDerived: conditions.KeepDerived,
	}
	for {
		response, err := invoke(ctx, c, c.memories.DeleteWhere, request)
		if err != nil {
			return deleted, err
		}
		deleted += response.GetDeletedCount()
		*settings.derivedCount += response.GetDerivedCount()
		if request.PageToken = response.GetNextPageToken(); request.PageToken == "" {
			return deleted, nil
		}
		request.RequestId = newUUID()
	}
}
