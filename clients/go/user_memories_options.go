package memory

import "time"

// Ptr returns a pointer to a value, for the fields of options that distinguish "not given" from zero, as in
// &SearchMemoriesOptions{Limit: Ptr(3)}.
func Ptr[T any](value T) *T {
	return &value
}

// SaveMemoryOptions are the optional arguments of [Client.SaveMemory].
type SaveMemoryOptions struct {
	// Source is where the fact came from, without the fields that the server sets. Nil: not given.
	Source *MemorySource
	// ExplicitRequest reports that the user asked to remember this, which makes it more important.
	// False: judged by the content and the quote of the source.
	ExplicitRequest bool
	// OnContradiction says what to do if the fact contradicts a known one. Empty: supersede the known one.
	OnContradiction OnContradiction
	// ValidFromTime is when the fact began to hold. Zero: now. A fact that began before a known one
	// that it contradicts is saved as having ended where the known one begins.
	ValidFromTime time.Time
	// TTL is the time until the memory expires. 0: it never does.
	TTL time.Duration
	// Labels for exact matching, as in {"topic": "travel"}.
	Labels map[string]string
	// Metadata are JSON values to store with the memory.
	Metadata map[string]any
	// KeepWording saves the content as given. False: it is put into the third person.
	KeepWording bool
	// DecideBy selects the decider. Empty: the language model if available, else rules.
	DecideBy DecidedBy
}

// SearchMemoriesOptions are the optional arguments of [Client.SearchMemories].
type SearchMemoriesOptions struct {
	// Categories: only memories in one of these. Empty: any.
	Categories []MemoryCategory
	// Limit is the maximum number of memories. Nil: 5. -1: no limit.
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
	// SessionID of the conversation that the memories came from. Empty: any.
	SessionID string
	// MinScore is the lowest score of a result. Nil: any.
	MinScore *float64
	// Mode of the search. Empty: words and vectors together.
	Mode RetrieveMode
	// MaxTokens is the maximum number of tokens of all contents together, estimated. The worst matches are
	// omitted. Nil: no limit.
	MaxTokens *int
	// Explain adds an explanation of its score to each result.
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
	// IDs of the memories, at most 1000; missing ones are skipped. Empty: any.
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
	// SessionID of the conversation that the memories came from. Empty: any.
	SessionID string
	// StartTime: memories saved at or after it. Zero: no limit.
	StartTime time.Time
	// EndTime: memories saved before it. Zero: no limit.
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

// MemoryCorrection holds the new values of a memory: the fields that are set, or those that [WithFields]
// names.
type MemoryCorrection struct {
	// Content is the fact, 10 to 500 characters.
	Content string
	// Category of the fact.
	Category MemoryCategory
	// Reasoning is why it is worth remembering, 10 to 200 characters.
	Reasoning string
	// Importance is a score, stored as an adjustment named "manual".
	Importance *float64
	// ValidFromTime is when it began to hold.
	ValidFromTime time.Time
	// ValidUntilTime is the first moment at which it no longer holds.
	ValidUntilTime time.Time
	// ExpireTime is when it expires.
	ExpireTime time.Time
	// TTL is the time until it expires, in place of ExpireTime.
	TTL time.Duration
	// Labels replace all labels.
	Labels map[string]string
	// Metadata replace all metadata.
	Metadata map[string]any
	// KeepWording saves the content as given. False: it is put into the third person.
	KeepWording bool
	// DecideBy selects the decider. Empty: the language model if available, else rules.
	DecideBy DecidedBy
}

// DeleteMemoryOptions are the optional arguments of [Client.DeleteMemory].
type DeleteMemoryOptions struct {
	// IncludeHistory also removes the memories that this one superseded or was derived from, and those
	// before them. False: they stay in the history, and none of them holds again.
	IncludeHistory bool
}

// PreloadedMemoriesOptions are the optional arguments of [Client.GetPreloadedMemories].
type PreloadedMemoriesOptions struct {
	// MaxTokens is the maximum number of tokens of the text, estimated. A memory that does not fit is
	// omitted as a whole. Nil: 1000. -1: no limit.
	MaxTokens *int
	// Categories to preload. Empty: identity, preference and relationship.
	Categories []MemoryCategory
	// Limit is the maximum number of memories, up to 1000. Nil: 100.
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
	// IfNotRevision is the revision of an earlier answer to the same options. If the text is known to be
	// the same since, the answer is Unchanged and has no text and memories. Nil: always return them.
	IfNotRevision *int64
}

// ExtractMemoriesOptions are the optional arguments of [Client.ExtractMemories].
type ExtractMemoriesOptions struct {
	// SessionID of the session to examine; with messages, the conversation that they belong to. Empty:
	// none.
	SessionID string
	// AfterRevision: only items written later than this revision. 0: all of the session. Only without
	// messages.
	AfterRevision int64
	// Limit is the maximum number of items of the session to examine, oldest first, up to 1000. Nil: 100.
	// Only without messages.
	Limit *int
	// RecalledMemoryIDs of the memories recalled into the conversation, so that repeating them is not
	// new. At most 1000.
	RecalledMemoryIDs []string
	// Categories to look for. Empty: all.
	Categories []MemoryCategory
	// DryRun reports what would be saved and writes nothing.
	DryRun bool
	// OnContradiction says what to do with a fact that contradicts a known one. Empty: supersede the known
	// one.
	OnContradiction OnContradiction
	// DecideBy selects the decider. Empty: the language model if available, else rules.
	DecideBy DecidedBy
	// Actor that saves the memories, such as an agent's name. Empty: not given.
	Actor string
	// Labels of the memories.
	Labels map[string]string
}

// ConsolidateMemoriesOptions are the optional arguments of [Client.ConsolidateMemories].
type ConsolidateMemoriesOptions struct {
	// DryRun reports what would be done and writes nothing.
	DryRun bool
	// Categories to examine. Empty: all.
	Categories []MemoryCategory
	// MemoryIDs of the memories to examine, such as those approved after a dry run, at most 1000. Empty:
	// all that hold.
	MemoryIDs []string
	// SimilarityThreshold is the cosine similarity from which memories are grouped, above 0 and at most 1.
	// Nil: the embedder's default.
	SimilarityThreshold *float64
	// Limit is the maximum number of groups to work on, most similar first, up to 500. Nil: 50.
	Limit *int
	// DecideBy selects the decider. Empty: the language model if available, else rules.
	DecideBy DecidedBy
}
