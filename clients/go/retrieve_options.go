package memory

import (
	"maps"
	"time"
)

// RetrieveMode selects how a query is matched.
type RetrieveMode string

// The modes of a query. Empty: as suits the query.
const (
	RetrieveHybrid  RetrieveMode = "hybrid"  // Words and vectors together.
	RetrieveVector  RetrieveMode = "vector"  // Cosine similarity of vectors.
	RetrieveLexical RetrieveMode = "lexical" // Words alone (BM25).
)

// ScoreWeights are the weights of the parts of a score: relative, finite and not negative, at least one
// positive.
type ScoreWeights struct {
	// Lexical is the weight of words. Nil: 0.75.
	Lexical *float64 `json:"lexical,omitempty"`
	// Vector is the weight of vector similarity. Nil: 0.25.
	Vector *float64 `json:"vector,omitempty"`
	// Recency is the weight of recency: 1 for an item of now, 0.5 for one a half-life older. 0: none.
	Recency float64 `json:"recency,omitempty"`
	// RecencyHalfLife is the age at which recency is 0.5. 0: 7 days.
	RecencyHalfLife time.Duration `json:"recency_half_life,omitempty"`
	// Importance is the weight of importance. 0: none.
	Importance float64 `json:"importance,omitempty"`
	// Usage is the weight of usage, n / (n + 3) after n uses. 0: none. [WithRecordUsage] counts them.
	Usage float64 `json:"usage,omitempty"`
}

// MemoryRetrieveOptions select items. Set them by the With functions.
type MemoryRetrieveOptions struct {
	// Limit is the maximum number of items. -1: no limit.
	Limit int `json:"limit"`
	// Query is a text to find items for. Empty: none.
	Query string `json:"query,omitempty"`
	// QueryEmbedding is the query's vector, in place of embedding the text. Nil: none.
	QueryEmbedding []float32 `json:"query_embedding,omitempty"`
	// SessionID of the items. Empty: any.
	SessionID string `json:"session_id,omitempty"`
	// Filter is an expression that holds for the items, see [WithFilter]. Empty: none.
	Filter string `json:"filter,omitempty"`
	// Labels that the items must have, all of them. Empty: any.
	Labels map[string]string `json:"labels,omitempty"`
	// StartTime: items that happened at or after it. Zero: no limit.
	StartTime time.Time `json:"start_time,omitzero"`
	// EndTime: items that happened before it. Zero: no limit.
	EndTime time.Time `json:"end_time,omitzero"`
	// Kinds: only items of these kinds. Empty: those of a conversation.
	Kinds []ItemKind `json:"kinds,omitempty"`
	// MinTrust is the lowest trust of the items, 0 to 1. Nil: any.
	MinTrust *float64 `json:"min_trust,omitempty"`
	// Sources: only items whose content comes from one of these; an empty source matches items of unknown
	// source. Empty: any.
	Sources []SourceKind `json:"sources,omitempty"`
	// MinScore is the lowest score of a result. Nil: any.
	MinScore *float64 `json:"min_score,omitempty"`
	// Mode of the search. Empty: as suits the query.
	Mode RetrieveMode `json:"mode,omitempty"`
	// Now is the time to which times in the query and ages of items are relative. Zero: the time of the
	// call.
	Now time.Time `json:"now,omitzero"`
	// Weights of the parts of a score. Nil: the defaults.
	Weights *ScoreWeights `json:"weights,omitempty"`
	// ContextWindow adds up to this many neighbours before and after each result.
	ContextWindow int `json:"context_window,omitempty"`
	// MaxTokens is the maximum number of tokens of the results' texts together, estimated. Nil: no limit.
	MaxTokens *int `json:"max_tokens,omitempty"`
	// Rerank reorders the best results by the server's reranker.
	Rerank bool `json:"rerank,omitempty"`
	// RecordUsage counts each result as used once.
	RecordUsage bool `json:"record_usage,omitempty"`
	// Explain adds an explanation of its score to each result.
	Explain bool `json:"explain,omitempty"`
	// IncludeEmbeddings returns the items' vectors.
	IncludeEmbeddings bool `json:"include_embeddings,omitempty"`
	// NewestFirst reverses the order of a list.
	NewestFirst bool `json:"newest_first,omitempty"`
	// OrderBy is a field by which items are ordered, see [WithOrderBy]. Empty: insertion order.
	OrderBy string `json:"order_by,omitempty"`
	// Skip is the number of items to leave out, see [WithSkip].
	Skip int `json:"skip,omitempty"`
	// PageSize is how many items are fetched at a time. 0: the server decides.
	PageSize int `json:"page_size,omitempty"`
	// Queries are further texts to find items for.
	Queries []string `json:"queries,omitempty"`
	// Namespaces are further namespaces to search.
	Namespaces []string `json:"namespaces,omitempty"`
	// MinRelevance is the lowest relevance of a result, 0 to 1. Nil: any.
	MinRelevance *float64 `json:"min_relevance,omitempty"`
	// NeighbourWeight is how much the words of neighbours count, 0 to 1. Nil: 1.
	NeighbourWeight *float64 `json:"neighbour_weight,omitempty"`
	// RefreshTTL lets each result live for its time to live from now.
	RefreshTTL bool `json:"refresh_ttl,omitempty"`
	// WholeExchanges leaves out tool calls without their results, and results without their call.
	WholeExchanges bool `json:"whole_exchanges,omitempty"`
	// TimeZone of phrases such as "yesterday" in the query, an IANA name. Empty: the namespace's.
	TimeZone string `json:"time_zone,omitempty"`
}

// MemoryRetrieveOption sets an option of a retrieval or a list.
type MemoryRetrieveOption func(o *MemoryRetrieveOptions)

// NewMemoryRetrieveOptions returns the default options: no limit, no filter.
func NewMemoryRetrieveOptions() *MemoryRetrieveOptions {
	return &MemoryRetrieveOptions{Limit: -1}
}

func retrieveOptionsFrom(options []MemoryRetrieveOption) *MemoryRetrieveOptions {
	wanted := NewMemoryRetrieveOptions()
	apply(wanted, options)
	return wanted
}

// WithMaxLimit sets the most items to return: with a query the best, without one the newest. 0: none.
func WithMaxLimit(limit int) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Limit = limit }
}

// WithNoLimit returns all items, fetched page by page, which is the default.
func WithNoLimit() MemoryRetrieveOption {
	return WithMaxLimit(-1)
}

// WithQuery finds items for a text, by words and vectors together if the server has an embedder.
func WithQuery(text string) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Query = text }
}

// WithQueryEmbedding finds items for your own vector; with [WithQuery] it replaces the vector of the
// text. It must have the dimension of the namespace.
func WithQueryEmbedding(vector []float32) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.QueryEmbedding = vector }
}

// WithSession returns only items of one conversation.
func WithSession(id string) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.SessionID = id }
}

// WithFilter returns only items that match an expression, such as `labels.topic = "travel" AND
// create_time >= "2023-05-01" AND NOT metadata.draft = true`. Its language is a subset of AIP-160. For a
// malformed one the call returns [ErrInvalidArgument], whose message shows where.
func WithFilter(expression string) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Filter = expression }
}

// WithLabels returns only items that have all these labels, with exactly these values. Repeated use adds
// labels.
func WithLabels(labels map[string]string) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) {
		if o.Labels == nil {
			o.Labels = make(map[string]string, len(labels))
		}
		maps.Copy(o.Labels, labels)
	}
}

// WithTimeRange returns only items that happened at or after start and before end. Zero: no limit.
func WithTimeRange(start, end time.Time) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.StartTime, o.EndTime = start, end }
}

// WithKinds returns only items of these kinds. Without it: those of a conversation, which are
// [KindPlain], [KindMessage], [KindResponse] and [KindReflection].
func WithKinds(kinds ...ItemKind) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Kinds = append(o.Kinds, kinds...) }
}

// WithMinTrust returns only items that are trusted at least this much, 0 to 1.
func WithMinTrust(trust float64) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.MinTrust = &trust }
}

// WithSources returns only items whose content comes from these sources. Without it: from any.
func WithSources(sources ...SourceKind) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Sources = append(o.Sources, sources...) }
}

// WithMinScore returns only results that score at least this. Only with a query.
func WithMinScore(score float64) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.MinScore = &score }
}

// WithQueries adds texts to find items for, such as the parts of a question, beside [WithQuery] or in its
// place; at most 8. The results of all are ordered by reciprocal rank fusion.
func WithQueries(texts ...string) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Queries = append(o.Queries, texts...) }
}

// WithNamespaces searches further namespaces together with that of the client, at most 16. Results of
// [Client.RetrieveResults] name their namespace. Only with a query.
func WithNamespaces(names ...string) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Namespaces = append(o.Namespaces, names...) }
}

// WithMinRelevance returns only results with at least this relevance, 0 to 1; there may be none. Only with a query.
func WithMinRelevance(relevance float64) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.MinRelevance = &relevance }
}

// WithNeighbourWeight sets how much the words of an item's neighbours count, 0 to 1. 0: an item is found
// by its own words only. Only with a query.
func WithNeighbourWeight(weight float64) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.NeighbourWeight = &weight }
}

// WithWholeExchanges leaves out tool calls without all of their results, and results without their call.
// Only without a query.
func WithWholeExchanges() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.WholeExchanges = true }
}

// WithRefreshTTL lets items live for their time to live from now: the ttl, or the time to the expire time, of
// the write that set it. They get no new revision.
func WithRefreshTTL() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.RefreshTTL = true }
}

// WithTimeZone sets the time zone of phrases such as "yesterday" in the query, for example
// "Europe/Berlin". Without it: the namespace's. Only with a query.
func WithTimeZone(name string) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.TimeZone = name }
}

// WithMode sets how a query is matched. Without it: as suits the query. Only with a query.
func WithMode(mode RetrieveMode) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Mode = mode }
}

// WithNow sets the time to which "yesterday" or "last May" in the query, and ages of items, are relative.
// Without it: the time of the call.
func WithNow(now time.Time) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Now = now }
}

// WithWeights sets the weights of the parts of a score. Without it: of words and vectors. Only with a
// query.
func WithWeights(weights ScoreWeights) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Weights = &weights }
}

// WithContextWindow adds to each result of [Client.RetrieveResults] its neighbours: the items of its
// session right before and after it, at most this many in each direction, 0 to 20. Of the filters, only
// [WithMinTrust] and [WithSources] apply to neighbours.
func WithContextWindow(neighbours int) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.ContextWindow = neighbours }
}

// WithMaxTokens limits the tokens of the results' texts together, neighbours included, estimated, at least
// 1. The best results that fit are returned, without a query the newest.
func WithMaxTokens(tokens int) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.MaxTokens = &tokens }
}

// WithRerank reorders the best results by the server's reranker: slower, and often better. Only with
// [WithQuery].
func WithRerank() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Rerank = true }
}

// WithRecordUsage counts each result as used once, for searches that weigh usage.
func WithRecordUsage() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.RecordUsage = true }
}

// WithExplain adds an explanation of its score to each result of [Client.RetrieveResults].
func WithExplain() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Explain = true }
}

// WithEmbeddings returns the items' vectors.
func WithEmbeddings() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.IncludeEmbeddings = true }
}

// WithNewestFirst reverses the order of [Client.ListItems]. Retrieve does not take it.
func WithNewestFirst() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.NewestFirst = true }
}

// WithOrderBy orders items by "create_time", "update_time", "revision" or "metadata.KEY"; " desc" after it
// reverses the order. Items without the value come last. Not with a query.
func WithOrderBy(field string) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.OrderBy = field }
}

// WithSkip leaves out this many items at the beginning; a retrieval without [WithOrderBy] leaves out the
// newest. Not with a query.
func WithSkip(items int) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Skip = items }
}

// WithPageSize sets how many items are fetched at a time, at most 1000. Without it: chosen by the server.
func WithPageSize(items int) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.PageSize = items }
}
