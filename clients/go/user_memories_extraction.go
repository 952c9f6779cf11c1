package memory

// ExtractedMemory is one fact that was found in messages, and what became of it.
type ExtractedMemory struct {
	// Outcome for the fact; in a dry run the outcome that it would have.
	Outcome MemoryOutcome
	// Memory as saved. Where nothing was written, the memory that it would be, without id and version.
	Memory *UserMemory
	// Existing is the known memory that decided the outcome, as it was before. Nil: none did.
	Existing *UserMemory
	// Superseded are the memories that ended with this one, as they now stand; in a dry run those that
	// would end, as they are.
	Superseded []*UserMemory
	// Similarity to the most similar memory known, a cosine from -1 to 1. Nil: none is known, or it
	// could not be measured.
	Similarity *float64
	// DecidedBy says what extracted it.
	DecidedBy DecidedBy
	// Reason for the outcome, for a human.
	Reason string
	// Confidence of the extractor, 0 to 1. Nil: not reported.
	Confidence *float64
}

// Extraction reports the facts that were found in messages, and those saved. Its DecidedBy is
// DecidedByRules also if rules extracted from only some of the messages.
type Extraction struct {
	Decision
	// Results, one for each fact that was found, in the order in which they were said.
	Results []ExtractedMemory
	// ExaminedCount is how many messages or items were looked through.
	ExaminedCount int
	// ExaminedRevision up to which the session was looked through: the next AfterRevision. 0: messages
	// were looked through.
	ExaminedRevision int64
	// More reports that the session holds later items.
	More bool
}

// Consolidation is a group of similar memories, and what is done to it.
type Consolidation struct {
	// Action that was decided on.
	Action ConsolidationAction
	// Sources are the memories of the group, as they were before.
	Sources []*UserMemory
	// Memory that takes their place or goes on holding. When it was not applied, what it would be; a
	// merged one is then without id and version. Nil: they stay as they are.
	Memory *UserMemory
	// Applied reports that the action was carried out. False: a dry run, nothing to do, or a failure, see
	// Failures.
	Applied bool
	// Similarity of the two most similar memories of the group, a cosine from -1 to 1.
	Similarity float64
	// DecidedBy says what decided on this group.
	DecidedBy DecidedBy
	// Reason for the action, for a human.
	Reason string
}

// Consolidations tell what a consolidation did, or in a dry run would do.
type Consolidations struct {
	Decision
	// Consolidations, one for each group of similar memories, the most similar first.
	Consolidations []Consolidation
	// ExaminedCount is how many memories were looked at.
	ExaminedCount int64
	// More reports that there are more groups than the limit: call again.
	More bool
}
