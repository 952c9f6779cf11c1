package memory

import (
	"reflect"
	"time"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// toRetrieve returns the options as the server takes them, for the first page.
func (o *MemoryRetrieveOptions) toRetrieve() (*memoryv1.RetrieveOptions, error) {
	if o.NewestFirst {
		return nil, invalidArgument("options.newest_first", "WithNewestFirst is only for lists: a retrieval has its own order")
	}
	kinds, err := kindsFrom(o.Kinds, "options.kinds")
	if err != nil {
		return nil, err
	}
	sources, err := sourcesFrom(o.Sources, "options.sources")
	if err != nil {
		return nil, err
	}
	mode, err := enumFrom[memoryv1.RetrieveMode](
		memoryv1.RetrieveMode_value, "RETRIEVE_MODE_", o.Mode, "options.mode")
	if err != nil {
		return nil, err
	}
	converted, err := o.numbers()
	if err != nil {
		return nil, err
	}
	converted.QueryText = o.Query
	converted.QueryEmbedding = embeddingFrom(o.QueryEmbedding)
	converted.SessionId = o.SessionID
	converted.Filter = o.Filter
	converted.Labels = o.Labels
	converted.StartTime, converted.EndTime = timeFrom(o.StartTime), timeFrom(o.EndTime)
	converted.Now = timeFrom(o.Now)
	converted.MinScore = o.MinScore
	converted.Mode = mode
	converted.Weights = weightsFrom(o.Weights)
	converted.Explain = o.Explain
	converted.IncludeEmbedding = o.IncludeEmbeddings
	converted.Kinds = kinds
	converted.MinTrust, converted.Sources = o.MinTrust, sources
	converted.Rerank = o.Rerank
	converted.RecordUsage = o.RecordUsage
	converted.Queries = o.Queries
	converted.MinRelevance, converted.NeighbourWeight = o.MinRelevance, o.NeighbourWeight
	converted.RefreshTtl = o.RefreshTTL
	converted.WholeExchanges, converted.TimeZone = o.WholeExchanges, o.TimeZone
	converted.OrderBy = o.OrderBy
	return converted, nil
}

func weightsFrom(weights *ScoreWeights) *memoryv1.ScoreWeights {
	if weights == nil {
		return nil
	}
	return &memoryv1.ScoreWeights{
		Lexical:         weights.Lexical,
		Vector:          weights.Vector,
		Recency:         weights.Recency,
		RecencyHalfLife: durationFrom(weights.RecencyHalfLife),
		Importance:      weights.Importance,
		Usage:           weights.Usage,
	}
}

// numbers returns options with the numbers, which protobuf limits to 32 bits.
func (o *MemoryRetrieveOptions) numbers() (*memoryv1.RetrieveOptions, error) {
	limit, err := int32From(o.Limit, "options.limit")
	if err != nil {
		return nil, err
	}
	converted := &memoryv1.RetrieveOptions{Limit: &limit}
	if converted.ContextWindow, err = int32From(o.ContextWindow, "options.context_window"); err != nil {
		return nil, err
	}
	if converted.PageSize, err = int32From(o.PageSize, "options.page_size"); err != nil {
		return nil, err
	}
	if converted.Skip, err = int32From(o.Skip, "options.skip"); err != nil {
		return nil, err
	}
	if o.MaxTokens != nil {
		tokens, err := int32From(*o.MaxTokens, "options.max_tokens")
		if err != nil {
			return nil, err
		}
		converted.MaxTokens = &tokens
	}
	return converted, nil
}

// toList returns the options as the server takes them for a list, for its first page, without the
// namespace.
func (o *MemoryRetrieveOptions) toList() (*memoryv1.ListRequest, error) {
	rest := *o
	rest.SessionID, rest.Labels, rest.Filter, rest.Kinds = "", nil, "", nil
	rest.MinTrust, rest.Sources = nil, nil
	rest.StartTime, rest.EndTime = time.Time{}, time.Time{}
	rest.NewestFirst, rest.IncludeEmbeddings, rest.PageSize = false, false, 0
	rest.OrderBy, rest.Skip = "", 0
	if field := rest.firstChanged(); field != "" {
		return nil, invalidArgument(field, field+": a list takes no options for queries and limits")
	}
	kinds, err := kindsFrom(o.Kinds, "kinds")
	if err != nil {
		return nil, err
	}
	sources, err := sourcesFrom(o.Sources, "sources")
	if err != nil {
		return nil, err
	}
	pageSize, err := int32From(o.PageSize, "page_size")
	if err != nil {
		return nil, err
	}
	skip, err := int32From(o.Skip, "skip")
	if err != nil {
		return nil, err
	}
	return &memoryv1.ListRequest{
		PageSize:         pageSize,
		OrderBy:          o.OrderBy,
		Skip:             skip,
		SessionId:        o.SessionID,
		Labels:           o.Labels,
		StartTime:        timeFrom(o.StartTime),
		EndTime:          timeFrom(o.EndTime),
		Filter:           o.Filter,
		NewestFirst:      o.NewestFirst,
		IncludeEmbedding: o.IncludeEmbeddings,
		Kinds:            kinds,
		MinTrust:         o.MinTrust,
		Sources:          sources,
	}, nil
}

// setGet sets the options of a request for one item.
func (o *MemoryRetrieveOptions) setGet(request *memoryv1.GetRequest) error {
	rest := *o
	rest.IncludeEmbeddings, rest.RefreshTTL = false, false
	if field := rest.firstChanged(); field != "" {
		return invalidArgument(field, field+": Get takes only WithEmbeddings and WithRefreshTTL")
	}
	request.IncludeEmbedding, request.RefreshTtl = o.IncludeEmbeddings, o.RefreshTTL
	return nil
}

// firstChanged returns the name of the first option that is not the default. Empty: all are.
func (o *MemoryRetrieveOptions) firstChanged() string {
	given, defaults := reflect.ValueOf(o).Elem(), reflect.ValueOf(NewMemoryRetrieveOptions()).Elem()
	for index := range given.NumField() {
		if !reflect.DeepEqual(given.Field(index).Interface(), defaults.Field(index).Interface()) {
			return snakeCase(given.Type().Field(index).Name)
		}
	}
	return ""
}
