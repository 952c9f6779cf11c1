package main

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

var memoryAdapters = map[string]adapter{
	"MemoryService/Add":             addItem,
	"MemoryService/BatchAdd":        batchAdd,
	"MemoryService/Retrieve":        retrieve,
	"MemoryService/Get":             getItem,
	"MemoryService/List":            listItems,
	"MemoryService/ListLabelValues": listLabelValues,
	"MemoryService/Update":          updateItem,
	"MemoryService/Delete":          deleteItem,
	"MemoryService/DeleteWhere":     deleteWhere,
	"MemoryService/BatchWrite":      batchWrite,
	"MemoryService/Reset":           reset,
}

// scoped returns the client of the request's namespace.
func scoped(client *memory.Client, in *fields) *memory.Client {
	return client.Namespace(in.text("namespace"))
}

// writeOptions reads the request id, and the conditions of a write if the request has any.
func writeOptions(in *fields) []memory.WriteOption {
	var options []memory.WriteOption
	if id := in.text("request_id"); id != "" {
		options = append(options, memory.WithRequestID(id))
	}
	known := in.message.Descriptor().Fields()
	if known.ByName("expected_version") != nil && in.has("expected_version") {
		options = append(options, memory.WithExpectedVersion(in.integer("expected_version")))
	}
	if known.ByName("expected_revision") != nil && in.has("expected_revision") {
		options = append(options, memory.WithExpectedRevision(in.integer("expected_revision")))
	}
	if known.ByName("update_mask") != nil && in.has("update_mask") {
		options = append(options, memory.WithFields(in.mask("update_mask")...))
	}
	if known.ByName("on_duplicate") != nil && in.has("on_duplicate") {
		options = append(options, memory.WithOnDuplicate(memory.OnDuplicate(in.enum("on_duplicate"))))
	}
	return options
}

func addItem(client *memory.Client, in *fields) call {
	client, item, options := scoped(client, in), in.child("item").item(), writeOptions(in)
	return func(ctx context.Context) (proto.Message, error) {
		written, err := client.AddItem(ctx, item, options...)
		if err != nil {
			return nil, err
		}
		if written.Revision == 0 && len(written.Degraded) == 0 {
			return &memoryv1.AddResponse{Skipped: true}, nil
		}
		return &memoryv1.AddResponse{
			Item: itemOf(written), Revision: written.Revision, Degraded: degradedOf(written.Degraded),
		}, nil
	}
}

func batchAdd(client *memory.Client, in *fields) call {
	client, options := scoped(client, in), writeOptions(in)
	items := each(in.childList("items"), (*fields).item)
	return func(ctx context.Context) (proto.Message, error) {
		written, err := client.BatchAdd(ctx, items, options...)
		if err != nil {
			return nil, err
		}
		response := &memoryv1.BatchAddResponse{
			Items: each(written, itemOf), SkippedCount: int64(len(items) - len(written)),
		}
		for _, item := range written {
			response.Revision, response.Degraded = item.Revision, degradedOf(item.Degraded)
		}
		return response, nil
	}
}

func retrieve(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	var options []memory.MemoryRetrieveOption
	if wanted := in.child("options"); wanted != nil {
		options = retrieveOptions(wanted)
	}
	options = append(options, memory.WithNamespaces(in.texts("namespaces")...))
	return func(ctx context.Context) (proto.Message, error) {
		found, err := client.RetrieveResults(ctx, options...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.RetrieveResponse{
			Results:    each(found.Results, resultOf),
			Degraded:   degradedOf(found.Degraded),
			Revision:   found.Revision,
			TokenCount: int32(found.TokenCount),
		}, nil
	}
}

func resultOf(result memory.Result) *memoryv1.RetrieveResult {
	return &memoryv1.RetrieveResult{
		Item:           itemOf(result.Item),
		Score:          result.Score,
		Explanation:    explanationOf(result.Explanation),
		Before:         each(result.Before, itemOf),
		After:          each(result.After, itemOf),
		Relevance:      result.Relevance,
		Namespace:      result.Namespace,
		MatchedQueries: each(result.MatchedQueries, func(index int) int32 { return int32(index) }),
	}
}

func retrieveOptions(in *fields) []memory.MemoryRetrieveOption {
	options := []memory.MemoryRetrieveOption{
		memory.WithQuery(in.text("query_text")),
		memory.WithQueryEmbedding(in.embedding("query_embedding")),
		memory.WithMode(memory.RetrieveMode(in.enum("mode"))),
		memory.WithContextWindow(in.number("context_window")),
		memory.WithNow(in.time("now")),
		memory.WithQueries(in.texts("queries")...),
		memory.WithTimeZone(in.text("time_zone")),
	}
	if limit := in.optionalNumber("limit"); limit != nil {
		options = append(options, memory.WithMaxLimit(*limit))
	}
	if score := in.optionalFloat("min_score"); score != nil {
		options = append(options, memory.WithMinScore(*score))
	}
	if relevance := in.optionalFloat("min_relevance"); relevance != nil {
		options = append(options, memory.WithMinRelevance(*relevance))
	}
	if weight := in.optionalFloat("neighbour_weight"); weight != nil {
		options = append(options, memory.WithNeighbourWeight(*weight))
	}
	if weights := in.child("weights"); weights != nil {
		options = append(options, memory.WithWeights(weights.scoreWeights()))
	}
	if tokens := in.optionalNumber("max_tokens"); tokens != nil {
		options = append(options, memory.WithMaxTokens(*tokens))
	}
	for name, option := range map[protoreflect.Name]memory.MemoryRetrieveOption{
		"explain":         memory.WithExplain(),
		"rerank":          memory.WithRerank(),
		"record_usage":    memory.WithRecordUsage(),
		"refresh_ttl":     memory.WithRefreshTTL(),
		"whole_exchanges": memory.WithWholeExchanges(),
	} {
		if in.flag(name) {
			options = append(options, option)
		}
	}
	return append(options, filterOptions(in)...)
}

func (f *fields) scoreWeights() memory.ScoreWeights {
	return memory.ScoreWeights{
		Lexical:         f.optionalFloat("lexical"),
		Vector:          f.optionalFloat("vector"),
		Recency:         f.float("recency"),
		RecencyHalfLife: f.duration("recency_half_life"),
		Importance:      f.float("importance"),
		Usage:           f.float("usage"),
	}
}

// filterOptions reads the options common to retrieving and listing.
func filterOptions(in *fields) []memory.MemoryRetrieveOption {
	options := []memory.MemoryRetrieveOption{
		memory.WithSession(in.text("session_id")),
		memory.WithLabels(in.labels("labels")),
		memory.WithTimeRange(in.time("start_time"), in.time("end_time")),
		memory.WithFilter(in.text("filter")),
		memory.WithKinds(each(in.enums("kinds"), kind)...),
		memory.WithPageSize(in.number("page_size")),
		memory.WithSources(in.sources()...),
		memory.WithOrderBy(in.text("order_by")),
		memory.WithSkip(in.number("skip")),
	}
	if trust := in.optionalFloat("min_trust"); trust != nil {
		options = append(options, memory.WithMinTrust(*trust))
	}
	if in.flag("include_embedding") {
		options = append(options, memory.WithEmbeddings())
	}
	return options
}

func getItem(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	id := memory.MemoryItemId(in.text("id"))
	if revision := in.integer("revision"); revision != 0 {
		return func(ctx context.Context) (proto.Message, error) {
			item, err := client.GetAt(ctx, id, revision)
			return &memoryv1.GetResponse{Item: itemOf(item)}, err
		}
	}
	var options []memory.MemoryRetrieveOption
	if in.flag("include_embedding") {
		options = append(options, memory.WithEmbeddings())
	}
	if in.flag("refresh_ttl") {
		options = append(options, memory.WithRefreshTTL())
	}
	return func(ctx context.Context) (proto.Message, error) {
		item, err := client.Get(ctx, id, options...)
		return &memoryv1.GetResponse{Item: itemOf(item)}, err
	}
}

func listItems(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	options := filterOptions(in)
	if in.flag("newest_first") {
		options = append(options, memory.WithNewestFirst())
	}
	return func(ctx context.Context) (proto.Message, error) {
		items, err := collected(client.ListItems(ctx, options...), itemOf)
		return &memoryv1.ListResponse{Items: items}, err
	}
}

func listLabelValues(client *memory.Client, in *fields) call {
	client, key, prefix := scoped(client, in), in.text("key"), in.text("prefix")
	pageSize := memory.WithEntriesPerPage(in.number("page_size"))
	return func(ctx context.Context) (proto.Message, error) {
		values, err := collected(client.ListLabelValues(ctx, key, prefix, pageSize), labelValueOf)
		return &memoryv1.ListLabelValuesResponse{Values: values}, err
	}
}

func labelValueOf(value memory.LabelValue) *memoryv1.LabelValue {
	return &memoryv1.LabelValue{Value: value.Value, Count: value.Count}
}

func updateItem(client *memory.Client, in *fields) call {
	client, item, options := scoped(client, in), in.child("item").item(), writeOptions(in)
	return func(ctx context.Context) (proto.Message, error) {
		written, err := client.Update(ctx, item, options...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.UpdateResponse{
			Item: itemOf(written), Revision: written.Revision, Degraded: degradedOf(written.Degraded),
		}, nil
	}
}

func deleteItem(client *memory.Client, in *fields) call {
	client, options := scoped(client, in), writeOptions(in)
	id := memory.MemoryItemId(in.text("id"))
	if in.flag("keep_derived") {
		options = append(options, memory.WithKeepDerived())
	}
	return func(ctx context.Context) (proto.Message, error) {
		var derived int64
		revision, err := client.Delete(ctx, id, append(options, memory.WithDerivedCount(&derived))...)
		return &memoryv1.DeleteResponse{Revision: revision, DerivedCount: derived}, err
	}
}

func reset(client *memory.Client, in *fields) call {
	client, options := scoped(client, in), writeOptions(in)
	return func(ctx context.Context) (proto.Message, error) {
		removed, err := client.ResetNamespace(ctx, options...)
		return &memoryv1.ResetResponse{
			RemovedCount:      removed.ItemCount,
			RemovedStateCount: removed.StateCount,
			Revision:          removed.Revision,
		}, err
	}
}

func (in *fields) sources() []memory.SourceKind {
	return each(in.enums("sources"), func(source string) memory.SourceKind { return memory.SourceKind(source) })
}
