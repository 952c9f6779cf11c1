package memory

import (
	"strings"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// DegradationReason says what could not be done, for programs to act on.
type DegradationReason string

// Reasons for a degraded answer.
const (
	// The server runs without an embedder: text was searched or indexed by its words alone.
	DegradedNoEmbedder DegradationReason = "NO_EMBEDDER"
	// The embedder did not answer: text was searched by its words alone.
	DegradedEmbedderUnavailable DegradationReason = "EMBEDDER_UNAVAILABLE"
	// The namespace's vectors are its clients' own, or of another model: text was searched or indexed
	// by its words alone. Send vectors.
	DegradedForeignVectors DegradationReason = "FOREIGN_VECTORS"
	// The server runs without a language model: rules decided.
	DegradedNoLLM DegradationReason = "NO_LLM"
	// The language model did not answer, or not in a way that could be read: rules decided.
	DegradedLLMUnavailable DegradationReason = "LLM_UNAVAILABLE"
	// Items of the namespace wait for their vectors: until then they are found by their words alone.
	DegradedEmbeddingPending DegradationReason = "EMBEDDING_PENDING"
	// The server runs without a reranker: the order is that of the scores.
	DegradedNoReranker DegradationReason = "NO_RERANKER"
	// The reranker failed: the order is that of the scores.
	DegradedRerankerUnavailable DegradationReason = "RERANKER_UNAVAILABLE"
	// The server's write policy put the write into quarantine: it cannot be read until an administrator
	// releases it, and the answer holds the items as they would be written.
	DegradedQuarantined DegradationReason = "QUARANTINED"
)

// Degradation is something that the server could not do for an answer.
type Degradation struct {
	// Reason that it could not.
	Reason DegradationReason
	// Message for a human.
	Message string
}

// Contribution is the share of one channel in a score.
type Contribution struct {
	// Channel that contributes: "vector", "lexical", "recency", "importance", "usage", "reranker", or a
	// boost: "speaker", "time" or "phrase" for what the query names or quotes.
	Channel string
	// RawScore of the channel: cosine similarity, BM25, 0 to 1 for recency, importance and usage, the
	// reranker's own, or of a boost the score without boosts.
	RawScore float64
	// Weight that the channel's score is multiplied by, after it was divided by Scale.
	Weight float64
	// Scale that the channel's score is divided by.
	Scale float64
	// Contribution to the score.
	Contribution float64
}

// Result is one item found.
type Result struct {
	// Item that was found.
	Item *Item
	// Score of the item, higher is better. By vectors: the cosine similarity, -1 to 1. By words: BM25,
	// above 0. By both, or where anything else has a weight: 0 to 1. 0 without a query.
	Score float64
	// Explanation is what the score is made of. Nil unless asked for by [WithExplain].
	Explanation []Contribution
	// Before are the items of its session right before it, in their order. Empty unless asked for by
	// [WithContextWindow].
	Before []*Item
	// After are the items of its session right after it, in their order.
	After []*Item
}

// Results are the items found, and what is known beside them.
type Results struct {
	// Results: with a query the best first, without one the oldest first.
	Results []Result
	// Degraded names what the server could not do for this answer. Empty: nothing.
	Degraded []Degradation
	// Revision of the namespace that the answer reflects.
	Revision int64
	// TokenCount is how many tokens the texts take, neighbours included, estimated. 0 unless
	// [WithMaxTokens] was given.
	TokenCount int
}

// Removed reports what was removed.
type Removed struct {
	// ItemCount is how many items were removed.
	ItemCount int64
	// StateCount is how many state keys were removed.
	StateCount int64
	// Revision of the namespace afterwards. 0: the namespace is gone.
	Revision int64
}

func resultTo(result *memoryv1.RetrieveResult) Result {
	return Result{
		Item:        itemTo(result.GetItem()),
		Score:       result.GetScore(),
		Explanation: explanationTo(result.GetExplanation()),
		Before:      itemsTo(result.GetBefore()),
		After:       itemsTo(result.GetAfter()),
	}
}

func explanationTo(explanation *memoryv1.Explanation) []Contribution {
	var shares []Contribution
	for _, share := range explanation.GetContributions() {
		shares = append(shares, Contribution{
			Channel:      share.GetChannel(),
			RawScore:     share.GetRawScore(),
			Weight:       share.GetWeight(),
			Scale:        share.GetScale(),
			Contribution: share.GetContribution(),
		})
	}
	return shares
}

func degradedTo(degraded []*memoryv1.Degradation) []Degradation {
	var reasons []Degradation
	for _, entry := range degraded {
		reason := enumTo[DegradationReason](entry.GetReason(), "DEGRADATION_REASON_")
		reasons = append(reasons, Degradation{
			Reason:  DegradationReason(strings.ToUpper(string(reason))),
			Message: entry.GetMessage(),
		})
	}
	return reasons
}
