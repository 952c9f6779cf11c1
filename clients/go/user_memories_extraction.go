package memory

// ExtractedMemory is one fact found in messages, and its outcome.
type ExtractedMemory struct {
	// Outcome for the fact, in a dry run the outcome that it would have.
	Outcome MemoryOutcome
	// Memory as saved, or if nothing was written as it would be saved, without id and version.
	Memory *UserMemory
	// Existing is the known memory that decided the outcome, as it was before. Nil: none did.
	Existing *UserMemory
	// Superseded are the memories that this one ended, as they are now, or in a dry run those that it would
	// end.
	Superseded []*UserMemory
	// Similarity to the most similar memory, a cosine from -1 to 1. Nil: there is none, or it could not
	// be measured.
	Similarity *float64
	// DecidedBy is the decider that extracted it.
	DecidedBy DecidedBy
	// Reason for the outcome, for humans.
	Reason string
	// Confidence of that decider, 0 to 1. Nil: not reported.
	Confidence *float64
}

// Extraction has the facts found in messages, and those saved. Its DecidedBy is DecidedByRules also if
// rules extracted from only some of the messages.
type Extraction struct {
	Decision
	// Results, one for each fact, in the order of the messages.
	Results []ExtractedMemory
	// ExaminedCount is the number of messages or items examined.
	ExaminedCount int
	// ExaminedRevision up to which the session was examined: the next AfterRevision. 0: messages were
	// given.
	ExaminedRevision int64
	// More reports that the session has later items.
	More bool
}

// Consolidation is a group of similar memories, and the action on it.
type Consolidation struct {
	// Action that was decided on.
	Action ConsolidationAction
	// Sources are the memories of the group, as they were before.
	Sources []*UserMemory
	// Memory that replaces them or still holds. If the action was not applied, as it would be; a merged one
	// is then without id and version. Nil: they are unchanged.
	Memory *UserMemory
	// Applied reports that the action was carried out. False: a dry run, nothing to do, or a failure, see
	// Failures.
	Applied bool
	// Similarity of the two most similar memories of the group, a cosine from -1 to 1.
	Similarity float64
	// DecidedBy is the decider for this group.
	DecidedBy DecidedBy
	// Reason for the action, for humans.
	Reason string
}

// Consolidations are the result of a consolidation, or in a dry run what it would do.
type Consolidations struct {
	Decision
	// Consolidations, one for each group of similar memories, most similar first.
	Consolidations []Consolidation
	// ExaminedCount is the number of memories examined.
	ExaminedCount int64
	// More reports that there are more groups than the limit: call again.
	More bool
}
