package memory

import "time"

// MemoryCategory is the subject of a memory. In answers, "unknown" is a value that only a newer server
// knows.
type MemoryCategory string

// The categories of memories.
const (
	// CategoryIdentity is who the user is: name, role, location. Base importance 10; preloaded.
	CategoryIdentity MemoryCategory = "identity"
	// CategoryPreference is likes, dislikes and settings of the user. Base importance 9; preloaded.
	CategoryPreference MemoryCategory = "preference"
	// CategoryRelationship is the people that the user knows. Base importance 8; preloaded.
	CategoryRelationship MemoryCategory = "relationship"
	// CategoryProject is what the user works on. Base importance 7; found by search.
	CategoryProject MemoryCategory = "project"
	// CategoryContext is the situation and the topics discussed. Base importance 5; found by search.
	CategoryContext MemoryCategory = "context"
)

// MemoryStatus says whether a memory still holds. "unknown" is a value that only a newer server knows.
type MemoryStatus string

// The states of memories.
const (
	// StatusActive: it holds.
	StatusActive MemoryStatus = "active"
	// StatusSuperseded: it held until ValidUntilTime; reads as of an earlier time return it.
	StatusSuperseded MemoryStatus = "superseded"
	// StatusMerged: it was merged into another one. Only reads with the history return it.
	StatusMerged MemoryStatus = "merged"
)

// MemoryOrigin is how a memory came about. Empty: not reported. "unknown" is a value that only a newer
// server knows.
type MemoryOrigin string

// The origins of memories.
const (
	// OriginSaved: by SaveMemory.
	OriginSaved MemoryOrigin = "saved"
	// OriginExtracted: by ExtractMemories, from messages.
	OriginExtracted MemoryOrigin = "extracted"
	// OriginConsolidated: by ConsolidateMemories, from others.
	OriginConsolidated MemoryOrigin = "consolidated"
)

// MemoryOutcome is the outcome for a fact. "unknown" is a value that only a newer server knows.
type MemoryOutcome string

// Outcomes of saving a fact.
const (
	// OutcomeSaved: it was saved, and no other memory changed.
	OutcomeSaved MemoryOutcome = "saved"
	// OutcomeDuplicate: it is already known, as Existing. Nothing was written.
	OutcomeDuplicate MemoryOutcome = "duplicate"
	// OutcomeSuperseded: it was saved, and ended the memories in Superseded, which it contradicts.
	OutcomeSuperseded MemoryOutcome = "superseded"
	// OutcomeContradiction: it contradicts Existing, and was not to be saved in that case. Nothing was
	// written.
	OutcomeContradiction MemoryOutcome = "contradiction"
	// OutcomeRecalled: it repeats a memory recalled into the conversation. Nothing was written. Only in
	// extraction.
	OutcomeRecalled MemoryOutcome = "recalled"
	// OutcomeRejected: it is not worth remembering. Nothing was written. Only in extraction.
	OutcomeRejected MemoryOutcome = "rejected"
)

// OnContradiction says what to do with a fact that contradicts a known one.
type OnContradiction string

// Ways to handle a fact that contradicts a known one.
const (
	// ContradictionSupersedes: save the new fact, and end the known one where the new one begins.
	ContradictionSupersedes OnContradiction = "supersede"
	// ContradictionKeepsBoth: save the new fact, and let the known one hold as well.
	ContradictionKeepsBoth OnContradiction = "keep_both"
	// ContradictionRefused: do not save the new fact.
	ContradictionRefused OnContradiction = "refuse"
)

// ConsolidationAction is the action on a group of similar memories. "unknown" is a value that only a
// newer server knows.
type ConsolidationAction string

// Actions on a group of similar memories.
const (
	// ActionMerge: they say much the same, and one memory with everything they say replaces them.
	ActionMerge ConsolidationAction = "merge"
	// ActionSupersede: they contradict each other, and only the one that began last still holds.
	ActionSupersede ConsolidationAction = "supersede"
	// ActionKeep: they say different things, and are left unchanged.
	ActionKeep ConsolidationAction = "keep"
)

// MemorySource is where a memory came from.
type MemorySource struct {
	// SessionID is the conversation that it came from. Empty: not given. At most 256 bytes.
	SessionID string
	// ItemIDs of the items that it came from, or of messages that were passed in without being stored. At
	// most 100.
	ItemIDs []string
	// Quote of the user's exact words. Empty: not given. At most 2 KiB.
	Quote string
	// Actor that saved it, such as an agent's name. Empty: not given. At most 256 bytes.
	Actor string
	// Origin is how it came about. Set by the server.
	Origin MemoryOrigin
	// MemoryIDs of the memories that it was derived from. Set by the server.
	MemoryIDs []string
	// Model that worded it, as "provider:model". Empty: none. Set by the server.
	Model string
}

// ImportanceAdjustment is one boost or reduction of an importance.
type ImportanceAdjustment struct {
	// Name in snake_case, such as "explicit_request"; "manual": a caller set the score.
	Name string
	// Amount is above 0 for a boost, below 0 for a reduction.
	Amount float64
	// Reason, such as the words that led to it. Empty: unknown.
	Reason string
}

// Importance is how important a memory is, and why.
type Importance struct {
	// Base importance of the category, 5 to 10.
	Base float64
	// Boosts that were added.
	Boosts []ImportanceAdjustment
	// Reductions that were subtracted.
	Reductions []ImportanceAdjustment
	// Score is the sum of base, boosts and reductions, at least 0.
	Score float64
	// DecayFactor by which age lowers the score, 0 to 1. 1: no decay.
	DecayFactor float64
	// CurrentScore is Score times DecayFactor, which reads use.
	CurrentScore float64
	// DecidedBy is the decider that found the boosts and reductions.
	DecidedBy DecidedBy
}

// UserMemory is one fact about the user. Times are in UTC.
type UserMemory struct {
	// ID of the memory, unique in its namespace. Empty: not saved.
	ID string
	// Content is the fact in the third person, as in "User prefers dark mode".
	Content string
	// Category of the fact.
	Category MemoryCategory
	// Reasoning is why it is worth remembering.
	Reasoning string
	// Importance of the fact, and how it came about.
	Importance Importance
	// Version is the number of its writes, from 1. 0: not saved.
	Version int64
	// Status says whether it still holds.
	Status MemoryStatus
	// ValidFromTime is when it began to hold.
	ValidFromTime time.Time
	// ValidUntilTime is the first moment at which it no longer holds. Zero: it still holds.
	ValidUntilTime time.Time
	// SupersededBy is the id of the memory that replaced it or that it was merged into. Empty: none, or
	// that one was deleted.
	SupersededBy string
	// Supersedes are the ids of the memories that it replaced.
	Supersedes []string
	// OriginalContent is the fact as given. Empty: the same as Content.
	OriginalContent string
	// Source is where it came from.
	Source MemorySource
	// CreateTime is when it was saved.
	CreateTime time.Time
	// UpdateTime is when this version was written.
	UpdateTime time.Time
	// ExpireTime is when it expires, with its history. Zero: never.
	ExpireTime time.Time
	// Labels for exact matching.
	Labels map[string]string
	// Metadata are JSON values stored with it.
	Metadata map[string]any
	// Revision of the namespace at which this version was written.
	Revision int64
	// Provenance records its writer, its sources and its trust. Nil: written by a caller without a name,
	// and therefore trusted.
	Provenance *Provenance
}

// SavedMemory is the result of saving a fact. Its Decision is the one on the outcome.
type SavedMemory struct {
	Decision
	// Outcome for the fact.
	Outcome MemoryOutcome
	// Memory as saved. Nil: nothing was saved.
	Memory *UserMemory
	// Existing is the known memory that decided the outcome, as it was before. Nil: no known memory is
	// similar.
	Existing *UserMemory
	// Superseded are the memories that this one ended, as they are now.
	Superseded []*UserMemory
	// Message for the user or the model, such as "Similar memory already exists".
	Message string
	// Similarity to the most similar memory, a cosine from -1 to 1. Nil: there is none, or it could not
	// be measured.
	Similarity *float64
	// DuplicateThreshold is the similarity above which a fact is a duplicate. 0: there is no embedder, and
	// words were compared.
	DuplicateThreshold float64
	// RephrasedBy is the decider that put the content into the third person. DecidedByNobody: unchanged.
	RephrasedBy DecidedBy
}

// UpdatedMemory is the result of a correction. Its Decision has no reason.
type UpdatedMemory struct {
	Decision
	// Outcome is OutcomeSaved, or OutcomeDuplicate if another memory already says the new content: then
	// nothing was written.
	Outcome MemoryOutcome
	// Memory as it is now.
	Memory *UserMemory
	// Existing is the other memory that already says the new content. Nil: none does.
	Existing *UserMemory
	// RephrasedBy is the decider that put the content into the third person. DecidedByNobody: unchanged.
	RephrasedBy DecidedBy
}

// RemovedMemories is the result of a deletion.
type RemovedMemories struct {
	// Count of removed memories.
	Count int64
	// Revision of the namespace afterwards.
	Revision int64
	// DerivedCount is the number of further items that were removed because they were made only from these.
	DerivedCount int64
}

// MemoryResults are the memories found, and facts about the search.
type MemoryResults struct {
	// Results, best first.
	Results []MemoryResult
	// Degraded lists what the server could not do for this answer. Empty: it did everything.
	Degraded []Degradation
	// Revision of the namespace that the answer reflects.
	Revision int64
}

// MemoryResult is one memory found.
type MemoryResult struct {
	// Memory that was found.
	Memory *UserMemory
	// Score of the memory, higher is better.
	Score float64
	// Explanation holds the contributions that add up to the score. Empty unless requested.
	Explanation []Contribution
}

// PreloadedMemories are the memories that belong in every system prompt.
type PreloadedMemories struct {
	// Memories that are in Text, the most important first.
	Memories []*UserMemory
	// Text is a block for a system prompt, in the order of saving. It is stored data, not instructions.
	// Empty: there are no memories, or it is Unchanged.
	Text string
	// TokenCount of Text, estimated, also if it is Unchanged.
	TokenCount int
	// OmittedCount is how many memories were omitted because of MaxTokens or Limit.
	OmittedCount int64
	// Revision of the namespace that the answer reflects.
	Revision int64
	// Unchanged: the text is that at IfNotRevision; Text and Memories are empty.
	Unchanged bool
}
