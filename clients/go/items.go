package memory

import (
	"context"
	"fmt"
	"iter"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

var _ Memory = (*Client)(nil)

// Add writes one item. When it returns, the item is on disk and every later read sees it. An item
// without an id gets one, which [Client.AddItem] returns. For your own implementations of [MemoryItem]
// see [NewItem].
//
// It returns [ErrAlreadyExists] if an item with this id exists.
func (c *Client) Add(ctx context.Context, memory MemoryItem) error {
	item, err := NewItem(memory)
	if err != nil {
		return err
	}
	_, err = c.AddItem(ctx, item)
	return err
}

// AddItem writes one item and returns it as written, without its embedding. When it returns, the
// item is on disk and every later read sees it. It takes [WithOnDuplicate] and [WithRequestID].
//
// If an item with this id exists, it returns [ErrAlreadyExists], unless [WithOnDuplicate] says otherwise.
// With [DuplicateSkip] nothing is written then, and it returns a copy of the given item with Revision 0.
// An item in quarantine also has Revision 0, but [DegradedQuarantined] among its Degraded. It returns
// [ErrInvalidArgument] if a field is malformed or the vector's dimension is not the namespace's.
func (c *Client) AddItem(ctx context.Context, item *Item, options ...WriteOption) (*Item, error) {
	settings, err := writeSettingsFrom(options, onDuplicateOption)
	if err != nil {
		return nil, err
	}
	converted, err := itemFrom(item, "item")
	if err != nil {
		return nil, err
	}
	choice, err := onDuplicateFrom(settings.onDuplicate, "on_duplicate")
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.memories.Add, &memoryv1.AddRequest{
		Namespace: c.namespace, Item: converted, RequestId: settings.requestID, OnDuplicate: choice,
	})
	if err != nil {
		return nil, err
	}
	if response.GetSkipped() {
		return skippedItem(item, response.GetDegraded()), nil
	}
	return writtenTo(response.GetItem(), response.GetDegraded()), nil
}

// BatchAdd writes up to 1000 items, all or none, and returns them as written, in the same order, without
// those that were skipped because of [DuplicateSkip]. Above 3 MiB in total, the result omits the fields
// that were sent. It takes [WithOnDuplicate] and [WithRequestID].
func (c *Client) BatchAdd(ctx context.Context, items []*Item, options ...WriteOption) ([]*Item, error) {
	settings, err := writeSettingsFrom(options, onDuplicateOption)
	if err != nil {
		return nil, err
	}
	choice, err := onDuplicateFrom(settings.onDuplicate, "on_duplicate")
	if err != nil {
		return nil, err
	}
	request := &memoryv1.BatchAddRequest{
		Namespace: c.namespace, RequestId: settings.requestID, OnDuplicate: choice,
	}
	for index, item := range items {
		converted, err := itemFrom(item, fmt.Sprintf("items[%d]", index))
		if err != nil {
			return nil, err
		}
		request.Items = append(request.Items, converted)
	}
	response, err := invoke(ctx, c, c.memories.BatchAdd, request)
	if err != nil {
		return nil, err
	}
	written := make([]*Item, len(response.GetItems()))
	for index, item := range response.GetItems() {
		written[index] = writtenTo(item, response.GetDegraded())
	}
	return written, nil
}

// Retrieve returns what an agent needs for its next step: with [WithQuery] or [WithQueryEmbedding] the
// best items, best first; without a query the newest items, the oldest of them first. Without
// [WithMaxLimit] it returns all items, which it fetches page by page.
//
// The items are of type [*Item]. For scores and neighbours see [Client.RetrieveResults].
func (c *Client) Retrieve(ctx context.Context, options ...MemoryRetrieveOption) ([]MemoryItem, error) {
	found, err := c.RetrieveResults(ctx, options...)
	if err != nil {
		return nil, err
	}
	items := make([]MemoryItem, len(found.Results))
	for index, result := range found.Results {
		items[index] = result.Item
	}
	return items, nil
}

// RetrieveResults is [Client.Retrieve] with more than the items: scores, explanations, neighbours, and
// what the server could not do.
func (c *Client) RetrieveResults(ctx context.Context, options ...MemoryRetrieveOption) (*Results, error) {
	chosen := retrieveOptionsFrom(options)
	wanted, err := chosen.toRetrieve()
	if err != nil {
		return nil, err
	}
	found := &Results{}
	request := &memoryv1.RetrieveRequest{
		Namespace: c.namespace, Namespaces: chosen.Namespaces, Options: wanted,
	}
	for {
		response, err := invoke(ctx, c, c.memories.Retrieve, request)
		if err != nil {
			return nil, err
		}
		if wanted.PageToken == "" {
			found.Degraded, found.Revision = degradedTo(response.GetDegraded()), response.GetRevision()
		}
		found.TokenCount += int(response.GetTokenCount())
		for _, result := range response.GetResults() {
			found.Results = append(found.Results, resultTo(result))
		}
		if wanted.PageToken = response.GetNextPageToken(); wanted.PageToken == "" {
			return found, nil
		}
	}
}

// Get returns one item. It returns [ErrNotFound] if the namespace has no item with this id. It takes
// [WithEmbeddings] and [WithRefreshTTL].
func (c *Client) Get(ctx context.Context, id MemoryItemId, options ...MemoryRetrieveOption) (*Item, error) {
	request := &memoryv1.GetRequest{Namespace: c.namespace, Id: string(id)}
	if err := retrieveOptionsFrom(options).setGet(request); err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.memories.Get, request)
	if err != nil {
		return nil, err
	}
	return itemTo(response.GetItem()), nil
}

// ListItems yields the items in the order in which they were added; pages are fetched as needed, so
// few items are in memory at a time.
//
// It takes [WithSession], [WithLabels], [WithTimeRange], [WithFilter], [WithKinds], [WithEmbeddings],
// [WithNewestFirst], [WithOrderBy], [WithSkip] and [WithPageSize], and refuses the options for queries and limits.
func (c *Client) ListItems(ctx context.Context, options ...MemoryRetrieveOption) iter.Seq2[*Item, error] {
	wanted := retrieveOptionsFrom(options)
	return paged(func(token string) ([]*Item, string, error) {
		request, err := wanted.toList()
		if err != nil {
			return nil, "", err
		}
		request.Namespace, request.PageToken = c.namespace, token
		response, err := invoke(ctx, c, c.memories.List, request)
		if err != nil {
			return nil, "", err
		}
		return itemsTo(response.GetItems()), response.GetNextPageToken(), nil
	})
}

// Update changes the item with the given item's ID: the fields that are set in the given item, or those
// that [WithFields] names, among "content", "session_id", "create_time", "expire_time", "ttl", "labels",
// "metadata", "embedding", "importance" and "index". Labels and metadata are replaced as a whole. The server embeds
// content that comes without an embedding. It returns the item as written, without its embedding.
//
// It takes [WithFields], [WithExpectedRevision], with which it returns [ErrConflict] if the item's
// revision differs, and [WithRequestID]. It returns [ErrNotFound] if there is no such item.
func (c *Client) Update(ctx context.Context, item *Item, options ...WriteOption) (*Item, error) {
	settings, err := writeSettingsFrom(options, fieldsOption, expectedRevisionOption)
	if err != nil {
		return nil, err
	}
	converted, err := itemFrom(item, "item")
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.memories.Update, &memoryv1.UpdateRequest{
		Namespace:        c.namespace,
		Item:             converted,
		UpdateMask:       maskOf(settings.fields),
		ExpectedRevision: settings.expectedRevision,
		RequestId:        settings.requestID,
	})
	if err != nil {
		return nil, err
	}
	return writtenTo(response.GetItem(), response.GetDegraded()), nil
}

// Delete removes an item, and what was made only from it, and returns the namespace's revision. Made from
// an item are those that name it as a parent, facts extracted from it, responses, reflections and
// documents, and what was made from these; an item with several parents is removed with the last of them.
// It returns [ErrNotFound] if there is no such item. It takes [WithExpectedRevision], [WithKeepDerived],
// [WithDerivedCount] and [WithRequestID].
func (c *Client) Delete(ctx context.Context, id MemoryItemId, options ...WriteOption) (revision int64, err error) {
	settings, err := writeSettingsFrom(options, expectedRevisionOption, keepDerivedOption, derivedCountOption)
	if err != nil {
		return 0, err
	}
	response, err := invoke(ctx, c, c.memories.Delete, &memoryv1.DeleteRequest{
		Namespace:        c.namespace,
		Id:               string(id),
		ExpectedRevision: settings.expectedRevision,
		KeepDerived:      settings.keepDerived,
		RequestId:        settings.requestID,
	})
	*settings.derivedCount = response.GetDerivedCount()
	return response.GetRevision(), err
}

// Reset removes everything in the namespace: items, state and history. It waits no longer than the
// client's timeout; to pass a context, use [Client.ResetNamespace].
func (c *Client) Reset() error {
	_, err := c.ResetNamespace(context.Background())
	return err
}

// ResetNamespace removes everything in the namespace: items, state and history. It takes [WithRequestID].
func (c *Client) ResetNamespace(ctx context.Context, options ...WriteOption) (Removed, error) {
	settings, err := writeSettingsFrom(options)
	if err != nil {
		return Removed{}, err
	}
	request := &memoryv1.ResetRequest{Namespace: c.namespace, RequestId: settings.requestID}
	response, err := invoke(ctx, c, c.memories.Reset, request)
	return Removed{
		ItemCount:  response.GetRemovedCount(),
		StateCount: response.GetRemovedStateCount(),
		Revision:   response.GetRevision(),
	}, err
}
