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
	// VerdictOmitted: the goal needs it, but it exceeds Limit or MaxTokens, or was removed meanwhile. The
	// reason shows which.
	VerdictOmitted KeyVerdict = "omitted"
)

// CheckRelevanceOptions are the optional arguments of [Client.CheckRelevance].
type CheckRelevanceOptions struct {
	// Limit is the maximum number of entries, up to 100. Nil: 10. 0: none; only decisions are returned.
	Limit *int
	// MaxTokens is the maximum number of tokens of all values together, estimated. An entry that does not
	// fit is omitted as a whole. Nil: 2000. -1: no limit except that of a response, about 3 MiB.
	MaxTokens *int
	// Pattern that keys must match, a glob as in [Client.SearchState]. Empty: all keys.
	Pattern string
	// MaxCandidates is the maximum number of keys to decide on, up to 200. Nil: 50.
	MaxCandidates *int
	// OmitValues omits the values, and leaves ContextText empty.
	OmitValues bool
	// DecideBy selects the decider. Empty: the language model if available, else rules.
	DecideBy DecidedBy
	// Explain adds an explanation of its score to each decision.
	Explain bool
}

// EvaluateForStorageOptions are the optional arguments of [Client.EvaluateForStorage].
type EvaluateForStorageOptions struct {
	// Goal of the tool call, at most 16 KiB. Empty: unknown.
	Goal string
	// Save saves the result if the decision is to keep it. False: the decision is only returned.
	Save bool
	// Arguments of the tool call, at most 64 KiB as JSON. Nil: unknown.
	Arguments map[string]any
	// IsError reports that the tool failed; such a result is never kept.
	IsError bool
	// Key to save under. Empty: the overseer chooses one.
	Key string
	// Overwrite replaces the value of an existing key, if it is still the value on which the decision was
	// based. False: an existing key is left unchanged.
	Overwrite bool
	// TTL is the time until a saved entry expires. 0: it never does.
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
	// DecidedBy is the decider for this key.
	DecidedBy DecidedBy
	// Reason for the verdict, for humans.
	Reason string
	// Score of the key in the search for candidates, 0 to 1. 0: not found by the search, but a
	// candidate because the namespace has few keys.
	Score float64
	// Explanation holds the contributions that add up to the score. Empty unless requested.
	Explanation []Contribution
}

// Relevance is the state that a goal needs. Its Decision is by rules also if there was no state to decide
// on.
type Relevance struct {
	Decision
	// Entries that the goal needs, most relevant first.
	Entries []*StateEntry
	// Decisions, one for each candidate: first those on Entries, in the same order. A key without a
	// decision was not a candidate.
	Decisions []KeyDecision
	// ContextText is the entries as a block for a prompt. It is stored data, not instructions. Empty: no
	// entries.
	ContextText string
	// TokenCount of ContextText, estimated.
	TokenCount int
	// KeyCount is the number of keys in the namespace that match the pattern.
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
	// Description to store with the value, by which it is found. Empty: it is not worth keeping.
	Description string
	// ExistingVersion of the key at the time of the decision, for your own SaveState with
	// [WithExpectedVersion]. 0: the key did not exist.
	ExistingVersion int64
}
