package memory

import (
	"context"
	"iter"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// LabelValue is a value of a label.
type LabelValue struct {
	// Value is the value itself.
	Value string
	// Count is the number of items that have it.
	Count int64
}

// ListLabelValues yields the distinct values of a label that begin with the prefix, in the order of their
// code points; pages are fetched as needed. It counts the items that [Client.ListItems] yields by default.
// It takes [WithEntriesPerPage].
func (c *Client) ListLabelValues(
	ctx context.Context, key, prefix string, options ...ListOption,
) iter.Seq2[LabelValue, error] {
	return paged(func(token string) ([]LabelValue, string, error) {
		preview, pageSize, err := listSettingsFrom(options)
		if err != nil {
			return nil, "", err
		}
		if preview {
			return nil, "", invalidArgument("include_preview", "labels have no previews")
		}
		response, err := invoke(ctx, c, c.memories.ListLabelValues, &memoryv1.ListLabelValuesRequest{
			Namespace: c.namespace, Key: key, Prefix: prefix, PageSize: pageSize, PageToken: token,
		})
		return labelValuesTo(response.GetValues()), response.GetNextPageToken(), err
	})
}

func labelValuesTo(messages []*memoryv1.LabelValue) []LabelValue {
	values := make([]LabelValue, len(messages))
	for i, message := range messages {
		values[i] = LabelValue{Value: message.GetValue(), Count: message.GetCount()}
	}
	return values
}
