package memory

import "time"

// MemoryCategory is the subject of a memory. In answers, "unknown" is a value that only a newer server
// knows.
type MemoryCategory string

// The categories of memories.
const (
	// CategoryIdentity is who the user is: name, role, location. Base importance 10; preloaded.
	CategoryIdentity MemoryCategory = "identity"
	// CategoryPreference is what the user likes, dislikes and has set. Base importance 9; preloaded.
	CategoryPreference MemoryCategory = "preference"
	// CategoryRelationship is the people that the user knows. Base importance 8; preloaded.
	CategoryRelationship MemoryCategory = "relationship"
	// CategoryProject is what the user works on. Base importance 7; found by search.
	CategoryProject MemoryCategory = "project"
	// CategoryContext is the situation and what was discussed. Base importance 5; found by search.
	CategoryContext MemoryCategory = "context"
)

// MemoryStatus says whether a memory still holds. "unknown" is a value that only a newer server knows.
type MemoryStatus string

// The states of memories.
const (
	// StatusActive: it holds.
	StatusActive MemoryStatus = "active"
	// StatusSuperseded: it held until ValidUntilTime; reads as of an earlier time show it.
	StatusSuperseded MemoryStatus = "superseded"
	// StatusMerged: it was merged into another one. Only reads with the history show it.
	StatusMerged MemoryStatus = "merged"
)

// MemoryOrigin is how a memory came about. Empty: not reported. "unknown" is a value that only a newer
// server knows.
type MemoryOrigin string

// The origins of memories.
const (
	// OriginSaved: by SaveMemory.
	OriginSaved MemoryOrigin = "saved"
	// OriginExtracted: by ExtractMemories, out of messages.
	OriginExtracted MemoryOrigin = "extracted"
	// OriginConsolidated: by ConsolidateMemories, out of others.
	OriginConsolidated MemoryOrigin = "consolidated"
)

// MemoryOutcome is what became of a fact. "unknown" is a value that only a newer server knows.
type MemoryOutcome string

// Outcomes of saving a fact.
const (
	// OutcomeSaved: it was saved, and no other memory changed.
	OutcomeSaved MemoryOutcome = "saved"
	// OutcomeDuplicate: it is known already, Existing says it. Nothing was written.
	OutcomeDuplicate MemoryOutcome = "duplicate"
	// OutcomeSuperseded: it was saved, and ended the memories that it contradicts, which are in
	// Superseded.
	OutcomeSuperseded MemoryOutcome = "superseded"
	// OutcomeContradiction: it contradicts Existing, and was not to be saved then. Nothing was written.
	OutcomeContradiction MemoryOutcome = "contradiction"
	// OutcomeRecalled: it repeats what was recalled into the conversation. Nothing was written. Only in
	// extraction.
	OutcomeRecalled MemoryOutcome = "recalled"
	// OutcomeRejected: it is not worth remembering. Nothing was written. Only in extraction.
	OutcomeRejected MemoryOutcome = "rejected"
)

// OnContradiction says what to do with a fact that contradicts a known one.
type OnContradiction string

// Ways to handle a fact that contradicts a known one.
const (
	// ContradictionSupersedes: the new fact is saved, and the known one ends where it begins.
	ContradictionSupersedes OnContradiction = "supersede"
	// ContradictionKeepsBoth: the new fact is saved, and the known one goes on holding.
	ContradictionKeepsBoth OnContradiction = "keep_both"
	// ContradictionRefused: the new fact is not saved.
	ContradictionRefused OnContradiction = "refuse"
)

// ConsolidationAction is what is done to a group of similar memories. "unknown" is a value that only a
// newer server knows.
type ConsolidationAction string

// Actions on a group of similar memories.
const (
	// ActionMerge: they say much the same, and one memory that says it all takes their place.
	ActionMerge ConsolidationAction = "merge"
	// ActionSupersede: they contradict each other, and the one that began last goes on holding.
	ActionSupersede ConsolidationAction = "supersede"
	// ActionKeep: they say different things, and stay as they are.
	ActionKeep ConsolidationAction = "keep"
)

// MemorySource is where a memory came from.
type MemorySource struct {
	// SessionID is the conversation that it came from. Empty: not given. At most 256 bytes.
	SessionID string
	// ItemIDs of the items that it came from, or of messages that were handed over without being
	// stored. At most 100.
	ItemIDs []string
	// Quote is what the user said, word for word. Empty: not given. At most 2 KiB.
	Quote string
	// Actor that saved it, such as an agent's name. Empty: not given. At most 256 bytes.
	Actor string
	// Origin is how it came about. Set by the server.
	Origin MemoryOrigin
	// MemoryIDs of the memories that it was made out of. Set by the server.
	MemoryIDs []string
	// Model that worded it, as "provider:model". Empty: none did. Set by the server.
	Model string
}

// ImportanceAdjustment is one boost or reduction of an importance.
type ImportanceAdjustment struct {
	// Name in snake_case, such as "explicit_request"; "manual": a caller set the score.
	Name string
	// Amount is above 0 for a boost, below 0 for a reduction.
	Amount float64
	// Reason, such as the words that it was found by. Empty: none is known.
	Reason string
}

// Importance is how important a memory is, and why.
type Importance struct {
	// Base of the category, 5 to 10.
	Base float64
	// Boosts that were added.
	Boosts []ImportanceAdjustment
	// Reductions that were taken off.
	Reductions []ImportanceAdjustment
	// Score is the sum of base, boosts and reductions, and not below 0.
	Score float64
	// DecayFactor that age has brought the score down to, 0 to 1. 1: no decay.
	DecayFactor float64
	// CurrentScore is Score times DecayFactor. Reads go by it.
	CurrentScore float64
	// DecidedBy says what found the boosts and reductions.
	DecidedBy DecidedBy
}

// UserMemory is one fact about the user. Times are in UTC.
type UserMemory struct {
	// ID names it inside its namespace. Empty: it is not saved.
	ID string
	// Content is the fact in the third person, as in "User prefers dark mode".
	Content string
	// Category of the fact.
	Category MemoryCategory
	// Reasoning is why it is worth remembering.
	Reasoning string
	// Importance of the fact, and how it came about.
	Importance Importance
	// Version counts its writes: 1 for the first. 0: it is not saved.
	Version int64
	// Status says whether it still holds.
	Status MemoryStatus
	// ValidFromTime is when it began to hold.
	ValidFromTime time.Time
	// ValidUntilTime is when it ceased to hold: the first moment that it does not. Zero: it still holds.
	ValidUntilTime time.Time
	// SupersededBy is the id of the memory that took its place or that it was merged into. Empty:
	// none, or that one was deleted.
	SupersededBy string
	// Supersedes are the ids of the memories whose place it took.
	Supersedes []string
	// OriginalContent is the fact as it was given. Empty: just like Content.
	OriginalContent string
	// Source is where it came from.
	Source MemorySource
	// CreateTime is when it was saved.
	CreateTime time.Time
	// UpdateTime is when this version was written.
	UpdateTime time.Time
	// ExpireTime is when it ceases to exist, history included. Zero: never.
	ExpireTime time.Time
	// Labels for exact matching.
	Labels map[string]string
	// Metadata are JSON values that are kept with it.
	Metadata map[string]any
	// Revision of the namespace at which this version was written.
	Revision int64
	// Provenance records its writer, its sources and its trust. Nil: written by a caller without a name,
	// and therefore trusted.
	Provenance *Provenance
}

// SavedMemory reports what became of a fact that was to be saved. Its Decision is the one on the
// outcome.
type SavedMemory struct {
	Decision
	// Outcome for the fact.
	Outcome MemoryOutcome
	// Memory as saved. Nil: nothing was saved.
	Memory *UserMemory
	// Existing is the known memory that decided the outcome, as it was before. Nil: the fact is like
	// no other.
	Existing *UserMemory
	// Superseded are the memories that ended with this one, as they now stand.
	Superseded []*UserMemory
	// Message for the user or the model, such as "Similar memory already exists".
	Message string
	// Similarity to the most similar memory known, a cosine from -1 to 1. Nil: none is known, or it
	// could not be measured.
	Similarity *float64
	// DuplicateThreshold that the similarity must be above for a duplicate. 0: there is no embedder,
	// and words were compared.
	DuplicateThreshold float64
	// RephrasedBy says what put the content into the third person. DecidedByNobody: it was left unchanged.
	RephrasedBy DecidedBy
}

// UpdatedMemory is the result of a correction. Its Decision has no reason.
type UpdatedMemory struct {
	Decision
	// Outcome is OutcomeSaved, or OutcomeDuplicate when another memory says the new content already:
	// nothing was written then.
	Outcome MemoryOutcome
	// Memory as it now stands.
	Memory *UserMemory
	// Existing is the other memory that says the new content already. Nil: none does.
	Existing *UserMemory
	// RephrasedBy says what put the content into the third person. DecidedByNobody: it was left unchanged.
	RephrasedBy DecidedBy
}

// RemovedMemories reports what a deletion removed.
type RemovedMemories struct {
	// Count of the memories that were removed.
	Count int64
	// Revision of the namespace afterwards.
	Revision int64
}

// MemoryResults are the memories found, and what is known beside them.
type MemoryResults struct {
	// Results, the best first.
	Results []MemoryResult
	// Degraded names what the server could not do for this answer. Empty: nothing.
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

// PreloadedMemories are what belongs into every system prompt.
type PreloadedMemories struct {
	// Memories that are in Text, the most important first.
	Memories []*UserMemory
	// Text is a block for a system prompt. It is stored data, not instructions. Empty: there are no
	// memories.
	Text string
	// TokenCount of Text, estimated.
	TokenCount int
	// OmittedCount is how many memories were left out for the number of tokens or the limit.
	OmittedCount int64
	// Revision of the namespace that the answer reflects.
	Revision int64
}
