package memory

import (
	"strings"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// DegradationReason says what the server could not do, for programs.
type DegradationReason string

// Reasons for a degraded answer.
const (
	// The server runs without an embedder: text was searched or indexed by its words alone.
	DegradedNoEmbedder DegradationReason = "NO_EMBEDDER"
	// The embedder did not answer: text was searched by its words alone.
	DegradedEmbedderUnavailable DegradationReason = "EMBEDDER_UNAVAILABLE"
	// The namespace's vectors are from its clients, or of another model: text was searched or indexed by
	// its words alone. Send vectors.
	DegradedForeignVectors DegradationReason = "FOREIGN_VECTORS"
	// The server runs without a language model: rules decided.
	DegradedNoLLM DegradationReason = "NO_LLM"
	// The language model did not answer, or its answer was unusable: rules decided.
	DegradedLLMUnavailable DegradationReason = "LLM_UNAVAILABLE"
	// Items of the namespace wait for vectors: until then they are found by their words alone.
	DegradedEmbeddingPending DegradationReason = "EMBEDDING_PENDING"
	// The server runs without a reranker: the order is that of the scores.
	DegradedNoReranker DegradationReason = "NO_RERANKER"
	// The reranker failed: the order is that of the scores.
	DegradedRerankerUnavailable DegradationReason = "RERANKER_UNAVAILABLE"
	// The server's write policy put the write into quarantine: it cannot be read until an administrator
	// releases it. The answer has the items as they would be written.
	DegradedQuarantined DegradationReason = "QUARANTINED"
)

// Degradation is something that the server could not do for an answer.
type Degradation struct {
	// Reason code, for programs.
	Reason DegradationReason
	// Message for humans.
	Message string
}

// Contribution is the share of one channel in a score.
type Contribution struct {
	// Channel that contributes: "vector", "lexical", "recency", "importance", "usage", "reranker", or a
	// boost for what the query names or quotes: "speaker", "time" or "phrase".
	Channel string
	// RawScore of the channel: cosine similarity, BM25, the reranker's score, or 0 to 1 for recency,
	// importance and usage. For a boost: the score without boosts.
	RawScore float64
	// Weight is the factor of the channel's score, after division by Scale.
	Weight float64
	// Scale is the divisor of the channel's score.
	Scale float64
	// Contribution to the score.
	Contribution float64
}

// Result is one item found.
type Result struct {
	// Item that was found.
	Item *Item
	// Score of the item, higher is better. By vectors: the cosine similarity, -1 to 1. By words: BM25,
	// above 0. By both, or if anything else has a weight: 0 to 1. 0 without a query.
	Score float64
	// Explanation holds the contributions that add up to the score. Nil without [WithExplain].
	Explanation []Contribution
	// Before are the items right before it in its session, in order. Empty without [WithContextWindow].
	Before []*Item
	// After are the items right after it in its session, in order.
	After []*Item
	// Relevance is how much the item has in common with the query, 0 to 1: words and meaning, not whether it
	// answers. 0 without a query.
	Relevance float64
	// Namespace of the item. Empty without [WithNamespaces].
	Namespace string
	// MatchedQueries are the indexes of the texts of [WithQueries] that found it.
	MatchedQueries []int
}

// Results are the items found, and facts about the search.
type Results struct {
	// Results: with a query best first, without one the oldest first.
	Results []Result
	// Degraded lists what the server could not do for this answer. Empty: it did everything.
	Degraded []Degradation
	// Revision of the namespace that the answer reflects.
	Revision int64
	// TokenCount is the estimated number of tokens of the texts, neighbours included. 0 without
	// [WithMaxTokens].
	TokenCount int
}

// Removed reports what was removed.
type Removed struct {
	// ItemCount is how many items were removed.
	ItemCount int64
	// StateCount is how many state keys were removed.
	StateCount int64
	// Revision of the namespace afterwards. 0: it no longer exists.
	Revision int64
}

func resultTo(result *memoryv1.RetrieveResult) Result {
	return Result{
		Item:           itemTo(result.GetItem()),
		Score:          result.GetScore(),
		Explanation:    explanationTo(result.GetExplanation()),
		Before:         itemsTo(result.GetBefore()),
		After:          itemsTo(result.GetAfter()),
		Relevance:      result.GetRelevance(),
		Namespace:      result.GetNamespace(),
		MatchedQueries: intsTo(result.GetMatchedQueries()),
	}
}

func intsTo(numbers []int32) []int {
	var converted []int
	for _, number := range numbers {
		converted = append(converted, int(number))
	}
	return converted
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
