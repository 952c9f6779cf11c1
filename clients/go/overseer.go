package memory

import "time"

// KeyVerdict is the decision on one key. "unknown" is a value that only a newer server knows.
type KeyVerdict string

// Verdicts on a key.
const (
	// VerdictRelevant: the goal needs it, and its entry is in the answer.
	VerdictRelevant KeyVerdict = "relevant"
	// VerdictNotRelevant: the goal does not need it.
	VerdictNotRelevant KeyVerdict = "not_relevant"
	// VerdictOmitted: the goal needs it, but it is over the limit or the number of tokens, or was
	// removed meanwhile. The reason says which.
	VerdictOmitted KeyVerdict = "omitted"
)

// CheckRelevanceOptions are the optional arguments of [Client.CheckRelevance].
type CheckRelevanceOptions struct {
	// Limit is the most entries wanted, at most 100. Nil: 10. 0: none; only decisions are returned.
	Limit *int
	// MaxTokens that the values of the answer may take together, estimated. An entry that does not fit
	// is left out whole. Nil: 2000. -1: no bound but that of a response, about 3 MiB.
	MaxTokens *int
	// Pattern that the keys match, a glob as in [Client.SearchState]. Empty: all keys.
	Pattern string
	// MaxCandidates is the most keys to be decided on, at most 200. Nil: 50.
	MaxCandidates *int
	// OmitValues leaves the values out, and ContextText empty.
	OmitValues bool
	// DecideBy selects the decider. Empty: the language model if available, else rules.
	DecideBy DecidedBy
	// Explain adds to each decision the breakdown of its score.
	Explain bool
}

// EvaluateForStorageOptions are the optional arguments of [Client.EvaluateForStorage].
type EvaluateForStorageOptions struct {
	// Goal that the tool was called for, at most 16 KiB. Empty: not known.
	Goal string
	// Save saves the result if the decision is to keep it. False: the decision is only returned.
	Save bool
	// Arguments that the tool was called with, at most 16 KiB as JSON. Nil: not known.
	Arguments map[string]any
	// IsError says that the tool failed; such a result is never kept.
	IsError bool
	// Key to save under. Empty: the overseer names one.
	Key string
	// Overwrite lets the save replace the value of a key that exists, if that value is still the one
	// that the decision was made from. False: a key that exists is left alone.
	Overwrite bool
	// TTL is how long a saved entry lives from now. 0: until it is deleted.
	TTL time.Duration
	// DecideBy selects the decider. Empty: the language model if available, else rules.
	DecideBy DecidedBy
}

// KeyDecision is the decision on one key, with its decider and its reason.
type KeyDecision struct {
	// Key that was decided on. It exists.
	Key string
	// Verdict on the key.
	Verdict KeyVerdict
	// DecidedBy says what decided on this key.
	DecidedBy DecidedBy
	// Reason for the verdict, for a human.
	Reason string
	// Score of the key in the search for candidates, 0 to 1. 0: the search did not find it, and it is
	// a candidate because the namespace has few keys.
	Score float64
	// Explanation holds the contributions that add up to the score. Empty unless requested.
	Explanation []Contribution
}

// Relevance is the state that a goal needs. Its Decision is by rules also when there was no state to
// decide on.
type Relevance struct {
	Decision
	// Entries that the goal needs, the most relevant first.
	Entries []*StateEntry
	// Decisions on every candidate, those on Entries first and in their order. A key that is not here
	// was not a candidate.
	Decisions []KeyDecision
	// ContextText is the entries as a block for a prompt. It is stored data, not instructions. Empty: no
	// entries.
	ContextText string
	// TokenCount of ContextText, estimated.
	TokenCount int
	// KeyCount is how many keys the namespace has that match the pattern.
	KeyCount int64
}

// StorageDecision says whether a tool's result is worth keeping, and what was saved.
type StorageDecision struct {
	Decision
	// ShouldSave is the decision: the result is worth keeping.
	ShouldSave bool
	// Key to keep it under. Empty: it is not worth keeping.
	Key string
	// Saved reports that the result was saved. If saving failed, Failures has the reason.
	Saved bool
	// Entry as saved, without its value. Nil: nothing was saved.
	Entry *StateEntry
	// Skipped reports that results of this tool are never kept.
	Skipped bool
	// Description to keep with the value, so that it is found again. Empty: it is not worth keeping.
	Description string
	// ExistingVersion of the key when it was decided on, for a SaveState of the caller's own with
	// [WithExpectedVersion]. 0: the key did not exist.
	ExistingVersion int64
}
