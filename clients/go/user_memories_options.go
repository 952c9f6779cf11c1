package memory

import "time"

// Ptr returns a pointer to a value, for the fields of options that tell "not given" from zero, as in
// &SearchMemoriesOptions{Limit: Ptr(3)}.
func Ptr[T any](value T) *T {
	return &value
}

// SaveMemoryOptions are the optional arguments of [Client.SaveMemory].
type SaveMemoryOptions struct {
	// Source is where the fact came from, without the fields that the server sets. Nil: not given.
	Source *MemorySource
	// ExplicitRequest says that the user asked for this to be remembered, which makes it more important.
	// False: judged by the content and the quote of the source.
	ExplicitRequest bool
	// OnContradiction says what to do if the fact contradicts a known one. Empty: supersede the known one.
	OnContradiction OnContradiction
	// ValidFromTime is when the fact began to hold. Zero: now. One that began before a known one that
	// it contradicts is saved as having ended where that begins.
	ValidFromTime time.Time
	// TTL is how long the memory lives from now. 0: until it is deleted.
	TTL time.Duration
	// Labels for exact matching, as in {"topic": "travel"}.
	Labels map[string]string
	// Metadata are JSON values to keep with the memory.
	Metadata map[string]any
	// KeepWording saves the content as it is given. False: it is put into the third person.
	KeepWording bool
	// DecideBy selects what rephrases and compares. Empty: the language model if available, else rules.
	DecideBy DecidedBy
}

// SearchMemoriesOptions are the optional arguments of [Client.SearchMemories].
type SearchMemoriesOptions struct {
	// Categories: only memories in one of these. Empty: any.
	Categories []MemoryCategory
	// Limit is the most memories wanted. Nil: 5. -1: no limit.
	Limit *int
	// AsOfTime selects the memories that held at that time. Zero: those that hold now. Not together with
	// IncludeHistory.
	AsOfTime time.Time
	// IncludeHistory also returns the memories that no longer hold.
	IncludeHistory bool
	// MinImportance is the lowest current importance score of the memories. Nil: any.
	MinImportance *float64
	// Labels that the memories must have: all of them, with exactly these values. Empty: any.
	Labels map[string]string
	// SessionID that the memories came from. Empty: any.
	SessionID string
	// MinScore is the lowest score of a result. Nil: any.
	MinScore *float64
	// Mode of the search. Empty: words and vectors together.
	Mode RetrieveMode
	// MaxTokens that the contents may take together, estimated. The least fitting are left out. Nil:
	// no bound.
	MaxTokens *int
	// Explain adds to each result the breakdown of its score.
	Explain bool
	// PageSize is how many results are fetched at a time. 0: the server decides.
	PageSize int
	// MinTrust is the lowest trust of the memories, 0 to 1. Nil: any.
	MinTrust *float64
	// Sources: only memories from one of these. Empty: any.
	Sources []SourceKind
}

// ListMemoriesOptions are the optional arguments of [Client.ListMemories].
type ListMemoriesOptions struct {
	// Categories: only memories in one of these. Empty: any.
	Categories []MemoryCategory
	// IDs of the memories, at most 1000; those that do not exist are left out. Empty: any.
	IDs []string
	// AsOfTime selects the memories that held at that time. Zero: those that hold now. Not together with
	// IncludeHistory.
	AsOfTime time.Time
	// IncludeHistory also returns the memories that no longer hold.
	IncludeHistory bool
	// MinImportance is the lowest current importance score of the memories. Nil: any.
	MinImportance *float64
	// Labels that the memories must have: all of them, with exactly these values. Empty: any.
	Labels map[string]string
	// SessionID that the memories came from. Empty: any.
	SessionID string
	// StartTime: memories saved at or after it. Zero: no bound.
	StartTime time.Time
	// EndTime: memories saved before it. Zero: no bound.
	EndTime time.Time
	// NewestFirst reverses the order.
	NewestFirst bool
	// PageSize is how many memories are fetched at a time. 0: 100. At most 1000.
	PageSize int
	// MinTrust is the lowest trust of the memories, 0 to 1. Nil: any.
	MinTrust *float64
	// Sources: only memories from one of these. Empty: any.
	Sources []SourceKind
}

// MemoryCorrection holds the new values of a memory. Those that are set are taken, or those that
// [WithFields] names.
type MemoryCorrection struct {
	// Content is the fact, 10 to 500 characters.
	Content string
	// Category of the fact.
	Category MemoryCategory
	// Reasoning is why it is worth remembering, 10 to 200 characters.
	Reasoning string
	// Importance is a score, kept as an adjustment named "manual".
	Importance *float64
	// ValidFromTime is when it began to hold.
	ValidFromTime time.Time
	// ValidUntilTime is when it ceased to hold.
	ValidUntilTime time.Time
	// ExpireTime is when it ceases to exist.
	ExpireTime time.Time
	// TTL is another way to give ExpireTime: that long from now.
	TTL time.Duration
	// Labels take the place of all labels.
	Labels map[string]string
	// Metadata take the place of all metadata.
	Metadata map[string]any
	// KeepWording saves the content as it is given. False: it is put into the third person.
	KeepWording bool
	// DecideBy selects what rephrases and compares. Empty: the language model if available, else rules.
	DecideBy DecidedBy
}

// DeleteMemoryOptions are the optional arguments of [Client.DeleteMemory].
type DeleteMemoryOptions struct {
	// IncludeHistory removes also the memories that this one superseded or was made out of, and those
	// before them. False: they stay in the history, and none of them comes back to hold.
	IncludeHistory bool
}

// PreloadedMemoriesOptions are the optional arguments of [Client.GetPreloadedMemories].
type PreloadedMemoriesOptions struct {
	// MaxTokens that the text may take, estimated. A memory that does not fit is left out whole. Nil:
	// 1000. -1: no bound.
	MaxTokens *int
	// Categories to preload. Empty: identity, preference and relationship.
	Categories []MemoryCategory
	// Limit is the most memories wanted, at most 1000. Nil: 100.
	Limit *int
	// MinImportance is the lowest current importance score of the memories. Nil: any.
	MinImportance *float64
	// AsOfTime selects the memories that held at that time. Zero: those that hold now.
	AsOfTime time.Time
	// Labels that the memories must have: all of them, with exactly these values. Empty: any.
	Labels map[string]string
	// MinTrust is the lowest trust of the memories, 0 to 1. Nil: any.
	MinTrust *float64
	// Sources: only memories from one of these. Empty: any.
	Sources []SourceKind
}

// ExtractMemoriesOptions are the optional arguments of [Client.ExtractMemories].
type ExtractMemoriesOptions struct {
	// SessionID whose items are looked through; with messages, the conversation that they are of.
	// Empty: none.
	SessionID string
	// AfterRevision: only items written later than this revision. 0: all of the session. Only without
	// messages.
	AfterRevision int64
	// Limit is the most items of the session to look through, the oldest first, at most 1000. Nil:
	// 100. Only without messages.
	Limit *int
	// RecalledMemoryIDs of the memories that were put into the conversation: what repeats them is not
	// taken for new. At most 1000.
	RecalledMemoryIDs []string
	// Categories to look for. Empty: all.
	Categories []MemoryCategory
	// DryRun reports what would be saved and writes nothing.
	DryRun bool
	// OnContradiction says what to do with a fact that contradicts a known one. Empty: supersede the known
	// one.
	OnContradiction OnContradiction
	// DecideBy selects the extractor. Empty: the language model if available, else rules.
	DecideBy DecidedBy
	// Actor that has the memories saved, such as an agent's name. Empty: not given.
	Actor string
	// Labels for the memories.
	Labels map[string]string
}

// ConsolidateMemoriesOptions are the optional arguments of [Client.ConsolidateMemories].
type ConsolidateMemoriesOptions struct {
	// DryRun reports what would be done and writes nothing.
	DryRun bool
	// Categories of the memories to look at. Empty: all.
	Categories []MemoryCategory
	// MemoryIDs of the memories to look at, such as those of a dry run that were approved, at most
	// 1000. Empty: all that hold.
	MemoryIDs []string
	// SimilarityThreshold is the cosine from which on memories are looked at together, above 0 and at
	// most 1. Nil: the embedder's own.
	SimilarityThreshold *float64
	// Limit is the most groups to work on, the most similar first, at most 500. Nil: 50.
	Limit *int
	// DecideBy selects what decides and words the merged memories. Empty: the language model if available,
	// else rules.
	DecideBy DecidedBy
}
