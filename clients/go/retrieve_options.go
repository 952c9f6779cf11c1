package memory

import (
	"maps"
	"time"
)

// RetrieveMode selects how a query is matched.
type RetrieveMode string

// The modes of a query. An empty one: what fits the query.
const (
	RetrieveHybrid  RetrieveMode = "hybrid"  // Words and vectors together.
	RetrieveVector  RetrieveMode = "vector"  // Cosine similarity of vectors.
	RetrieveLexical RetrieveMode = "lexical" // Words alone (BM25).
)

// ScoreWeights tell how much counts in the score of a result. They are relative: each is finite and 0
// or more, and one of them above 0.
type ScoreWeights struct {
	// Lexical is the weight of words. Nil: 0.75.
	Lexical *float64 `json:"lexical,omitempty"`
	// Vector is the weight of the vectors' similarity. Nil: 0.25.
	Vector *float64 `json:"vector,omitempty"`
	// Recency is the weight of an item's age: 1 for one of now, one half after a half-life. 0: none.
	Recency float64 `json:"recency,omitempty"`
	// RecencyHalfLife is the age at which recency is one half. 0: 7 days.
	RecencyHalfLife time.Duration `json:"recency_half_life,omitempty"`
	// Importance is the weight of the items' importance. 0: none.
	Importance float64 `json:"importance,omitempty"`
	// Usage is the weight of how often an item was used: with n uses, n / (n + 3). 0: none.
	// [WithRecordUsage] counts them.
	Usage float64 `json:"usage,omitempty"`
}

// MemoryRetrieveOptions tell what is wanted. Set them by the With functions.
type MemoryRetrieveOptions struct {
	// Limit is the most items wanted. -1: no limit.
	Limit int `json:"limit"`
	// Query is a text to find items for. Empty: none.
	Query string `json:"query,omitempty"`
	// QueryEmbedding is the query's vector, in place of embedding the text. Nil: none.
	QueryEmbedding []float32 `json:"query_embedding,omitempty"`
	// SessionID that the items have. Empty: any.
	SessionID string `json:"session_id,omitempty"`
	// Filter is an expression that holds for the items, see [WithFilter]. Empty: none.
	Filter string `json:"filter,omitempty"`
	// Labels that the items have, all of them. Empty: any.
	Labels map[string]string `json:"labels,omitempty"`
	// StartTime: items that happened at or after it. Zero: no bound.
	StartTime time.Time `json:"start_time,omitzero"`
	// EndTime: items that happened before it. Zero: no bound.
	EndTime time.Time `json:"end_time,omitzero"`
	// Kinds that the items have one of. Empty: those of a conversation.
	Kinds []ItemKind `json:"kinds,omitempty"`
	// MinTrust is the lowest trust of the items, 0 to 1. Nil: any.
	MinTrust *float64 `json:"min_trust,omitempty"`
	// Sources: only items whose content comes from one of these; an empty source matches items of unknown
	// source. Empty: any.
	Sources []SourceKind `json:"sources,omitempty"`
	// MinScore is the lowest score of a result. Nil: any.
	MinScore *float64 `json:"min_score,omitempty"`
	// Mode of the search. Empty: what fits the query.
	Mode RetrieveMode `json:"mode,omitempty"`
	// Now is what times in the query are relative to, and from which ages count. Zero: the time of the
	// call.
	Now time.Time `json:"now,omitzero"`
	// Weights of what a score is made of. Nil: the defaults.
	Weights *ScoreWeights `json:"weights,omitempty"`
	// ContextWindow is how many neighbours before and after a result come with it.
	ContextWindow int `json:"context_window,omitempty"`
	// MaxTokens that the texts of the results may take together, estimated. Nil: no bound.
	MaxTokens *int `json:"max_tokens,omitempty"`
	// Rerank lets the server's reranker put the best results in order.
	Rerank bool `json:"rerank,omitempty"`
	// RecordUsage counts each result as used once.
	RecordUsage bool `json:"record_usage,omitempty"`
	// Explain adds to each result the breakdown of its score.
	Explain bool `json:"explain,omitempty"`
	// IncludeEmbeddings returns the items' vectors.
	IncludeEmbeddings bool `json:"include_embeddings,omitempty"`
	// NewestFirst turns the order of a list round.
	NewestFirst bool `json:"newest_first,omitempty"`
	// PageSize is how many items are fetched at a time. 0: the server decides.
	PageSize int `json:"page_size,omitempty"`
}

// MemoryRetrieveOption changes what is retrieved or listed.
type MemoryRetrieveOption func(o *MemoryRetrieveOptions)

// NewMemoryRetrieveOptions returns the options that hold when none are given: no limit, no filter.
func NewMemoryRetrieveOptions() *MemoryRetrieveOptions {
	return &MemoryRetrieveOptions{Limit: -1}
}

func retrieveOptionsFrom(options []MemoryRetrieveOption) *MemoryRetrieveOptions {
	wanted := NewMemoryRetrieveOptions()
	for _, option := range options {
		option(wanted)
	}
	return wanted
}

// WithMaxLimit sets the most items wanted: without a query the newest, with one the best. 0: none.
func WithMaxLimit(limit int) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Limit = limit }
}

// WithNoLimit wants all items; they are fetched page by page. It is so without any option, too.
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

// WithSession wants items of one conversation.
func WithSession(id string) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.SessionID = id }
}

// WithFilter wants items for which an expression holds, such as
// `labels.topic = "travel" AND create_time >= "2023-05-01" AND NOT metadata.draft = true`. Its language
// is a subset of AIP-160. One that is malformed is [ErrInvalidArgument], and the message says where.
func WithFilter(expression string) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Filter = expression }
}

// WithLabels wants items that have all these labels, with these very values. Given several times,
// it adds to those before.
func WithLabels(labels map[string]string) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) {
		if o.Labels == nil {
			o.Labels = make(map[string]string, len(labels))
		}
		maps.Copy(o.Labels, labels)
	}
}

// WithTimeRange wants items that happened at or after start and before end. A zero time is no bound.
func WithTimeRange(start, end time.Time) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.StartTime, o.EndTime = start, end }
}

// WithKinds wants items of these kinds. Without it: those of a conversation, which are
// [KindPlain], [KindMessage], [KindResponse] and [KindReflection].
func WithKinds(kinds ...ItemKind) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Kinds = append(o.Kinds, kinds...) }
}

// WithMinTrust wants items that are trusted at least this much, 0 to 1.
func WithMinTrust(trust float64) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.MinTrust = &trust }
}

// WithSources wants items whose content comes from one of these. Without it: from any.
func WithSources(sources ...SourceKind) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Sources = append(o.Sources, sources...) }
}

// WithMinScore wants results that score at least this. Only with a query.
func WithMinScore(score float64) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.MinScore = &score }
}

// WithMode sets by what a query is answered. Without it: by what fits. Only with a query.
func WithMode(mode RetrieveMode) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Mode = mode }
}

// WithNow sets what "yesterday" or "last May" in the query is relative to, and from which the age of an
// item counts. Without it: the time of the call.
func WithNow(now time.Time) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Now = now }
}

// WithWeights sets what a score is made of. Without it: words and vectors. Only with a query.
func WithWeights(weights ScoreWeights) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Weights = &weights }
}

// WithContextWindow adds to each result of [Client.RetrieveResults] its neighbours: the items of its
// session right before and after it, at most this many in each direction, 0 to 20. Of the filters, only
// [WithMinTrust] and [WithSources] apply to neighbours.
func WithContextWindow(neighbours int) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.ContextWindow = neighbours }
}

// WithMaxTokens bounds what the texts of the results may take together, estimated, 1 or more; neighbours
// count, too. The best that fit are returned, without a query the newest.
func WithMaxTokens(tokens int) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.MaxTokens = &tokens }
}

// WithRerank lets the server's reranker put the best results in order: slower, and often better. Only
// with [WithQuery].
func WithRerank() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Rerank = true }
}

// WithRecordUsage counts each result as used once, for searches that weigh usage.
func WithRecordUsage() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.RecordUsage = true }
}

// WithExplain adds to each result of [Client.RetrieveResults] how its score came about.
func WithExplain() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.Explain = true }
}

// WithEmbeddings returns the items' vectors.
func WithEmbeddings() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.IncludeEmbeddings = true }
}

// WithNewestFirst turns the order of [Client.ListItems] round. Retrieve has no use for it.
func WithNewestFirst() MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.NewestFirst = true }
}

// WithPageSize sets how many items are fetched at a time, at most 1000. Without it: as the server
// likes.
func WithPageSize(items int) MemoryRetrieveOption {
	return func(o *MemoryRetrieveOptions) { o.PageSize = items }
}
