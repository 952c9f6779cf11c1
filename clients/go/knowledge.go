package memory

import "time"

// HandleMessageOutcome is the outcome of [Client.HandleMessage]. "unknown" is a value that only a newer
// server knows.
type HandleMessageOutcome string

// Outcomes of [Client.HandleMessage].
const (
	// HandledNotACommand: the message is not a command. Nothing was written, and there is no feedback.
	HandledNotACommand HandleMessageOutcome = "not_a_command"
	// HandledSaved: the chosen message was saved.
	HandledSaved HandleMessageOutcome = "saved"
	// HandledAlreadySaved: the chosen message had already been saved, as Document. Nothing was written.
	HandledAlreadySaved HandleMessageOutcome = "already_saved"
	// HandledNoMessage: the agent has no message with text among the last ones. Nothing was written.
	HandledNoMessage HandleMessageOutcome = "no_message"
	// HandledInvalidState: the chosen message is itself a command to save. Nothing was written.
	HandledInvalidState HandleMessageOutcome = "invalid_state"
)

// Document is a text that is kept whole and searched by its fragments. A document to be added needs only
// the text. Times are in UTC.
type Document struct {
	// ID of the document, unique in its namespace, 1 to 128 bytes without control characters. Empty when
	// added: the server makes one.
	ID string
	// Text of the document. Required when added, at most 1 MiB. Empty in lists, in search results and
	// after a write.
	Text string
	// Title of the document. Empty: none. At most 512 bytes.
	Title string
	// Source that the text comes from, such as a URL or a file name. Never opened by the server.
	// Empty: not given. At most 2 KiB.
	Source string
	// SourceItemID is the id of the message that was saved as this document. Empty: it was added by
	// [Client.AddDocument]. Set by the server.
	SourceItemID string
	// SessionID is the conversation that the document belongs to. Empty: none. At most 256 bytes.
	SessionID string
	// Labels for exact matching, as in {"topic": "travel"}. Searches for fragments also match them.
	Labels map[string]string
	// Metadata are JSON values stored with the document. At most 64 KiB as JSON.
	Metadata map[string]any
	// CreateTime is when the text was created. Zero when added: now.
	CreateTime time.Time
	// UpdateTime is when this version was written. Set by the server.
	UpdateTime time.Time
	// ExpireTime is when the document expires, with its fragments. Zero: never.
	ExpireTime time.Time
	// TTL is the time until it expires, in place of ExpireTime. Only in documents to be added.
	TTL time.Duration
	// Version is the number of its writes, from 1. Set by the server.
	Version int64
	// FragmentCount is the number of its fragments. Set by the server.
	FragmentCount int
	// SizeBytes is the size of the text in bytes of UTF-8. Set by the server.
	SizeBytes int64
	// Preview is the beginning of the text, at most 100 characters, with "..." if there is more. Set
	// by the server, only in lists and search results.
	Preview string
	// Revision of the namespace at which this version was written. Set by the server.
	Revision int64
	// Provenance records its writer, its sources and its trust. Set by the server. Nil: written by a caller
	// without a name, and therefore trusted.
	Provenance *Provenance
	// Degraded lists what the server could not do when this client wrote it, such as embedding its
	// fragments. Empty: it did everything.
	Degraded []Degradation
}

// Fragment is a piece of a document's text. Neighbours may overlap.
type Fragment struct {
	// ID of the fragment, unique in its namespace. A new version of the document has new fragments.
	ID string
	// DocumentID of the document that it belongs to.
	DocumentID string
	// DocumentVersion is the version of that document.
	DocumentVersion int64
	// Index of the fragment in its document, from 0.
	Index int
	// Text of the fragment: document.Text[StartByte:EndByte].
	Text string
	// StartOffset in the document's text, in Unicode code points, from 0.
	StartOffset int
	// EndOffset is the first code point after it.
	EndOffset int
	// StartByte in the document's text, in bytes of UTF-8, from 0.
	StartByte int
	// EndByte is the first byte after it.
	EndByte int
	// CreateTime is when it was made. UTC.
	CreateTime time.Time
	// Provenance records its writer and its trust. Nil: written by a caller without a name, and therefore
	// trusted.
	Provenance *Provenance
}

// SplitOptions configure how a text is split into fragments.
type SplitOptions struct {
	// MaxCharacters is the maximum number of Unicode code points of a fragment, 100 to 8000. Nil: the
	// server's setting, by default 1000.
	MaxCharacters *int
	// OverlapCharacters is the maximum overlap of fragments, in Unicode code points, up to half of
	// MaxCharacters. Nil: the server's setting, by default 100.
	OverlapCharacters *int
}

// HandleMessageOptions are the optional arguments of [Client.HandleMessage].
type HandleMessageOptions struct {
	// MessageID is the item id of this message, if it is stored, so that it is not chosen. Empty: it is not
	// stored.
	MessageID string
	// AgentName is the name in the agent's messages. Empty: any message of the assistant.
	AgentName string
	// Commands to recognise, in place of the server's, at most 32, each of 1 to 64 characters. A command
	// with a space may be anywhere in the message, in any case; one without must be the whole message, in
	// any case, or be in it in capitals. Empty: the server's.
	Commands []string
	// MaxRecentMessages is the number of last messages of the conversation to examine, 1 to 100. Nil: the
	// server's setting, by default 5.
	MaxRecentMessages *int
	// Labels for the document.
	Labels map[string]string
	// Metadata for the document.
	Metadata map[string]any
	// Split configures how the text is split. Nil: the server's settings.
	Split *SplitOptions
}

// AddDocumentOptions are the optional arguments of [Client.AddDocument].
type AddDocumentOptions struct {
	// Split configures how the text is split. Nil: the server's settings.
	Split *SplitOptions
	// Replace replaces the document with this id, if there is one. False: an existing id is refused.
	Replace bool
}

// GetDocumentOptions are the optional arguments of [Client.GetDocument].
type GetDocumentOptions struct {
	// IncludeFragments returns the fragments.
	IncludeFragments bool
	// PageSize is how many fragments are fetched at a time. 0: 100. At most 1000.
	PageSize int
}

// ListDocumentsOptions are the optional arguments of [Client.ListDocuments].
type ListDocumentsOptions struct {
	// SessionID of the documents. Empty: any.
	SessionID string
	// Labels that the documents must have: all of them, with exactly these values. Empty: any.
	Labels map[string]string
	// StartTime: documents whose CreateTime is at or after it. Zero: no limit.
	StartTime time.Time
	// EndTime: documents whose CreateTime is before it. Zero: no limit.
	EndTime time.Time
	// NewestFirst reverses the order.
	NewestFirst bool
	// PageSize is how many documents are fetched at a time. 0: 100. At most 1000.
	PageSize int
	// MinTrust is the lowest trust of the documents, 0 to 1. Nil: any.
	MinTrust *float64
	// Sources: only documents from one of these. Empty: any.
	Sources []SourceKind
}

// SearchFragmentsOptions are the optional arguments of [Client.SearchFragments].
type SearchFragmentsOptions struct {
	// Limit is the maximum number of fragments. Nil: 5. -1: no limit.
	Limit *int
	// DocumentIDs of the documents to search, at most 100. Empty: all.
	DocumentIDs []string
	// SessionID of the documents. Empty: any.
	SessionID string
	// Labels that the documents must have: all of them, with exactly these values. Empty: any.
	Labels map[string]string
	// StartTime: documents whose CreateTime is at or after it. Zero: no limit.
	StartTime time.Time
	// EndTime: documents whose CreateTime is before it. Zero: no limit.
	EndTime time.Time
	// MinScore is the lowest score of a result. Nil: any.
	MinScore *float64
	// Mode of the search. Empty: words and vectors together.
	Mode RetrieveMode
	// MaxTokens is the maximum number of tokens of all texts together, estimated. The worst matches are
	// omitted. Nil: no limit.
	MaxTokens *int
	// Explain adds an explanation of its score to each result.
	Explain bool
	// PageSize is how many results are fetched at a time. 0: the server decides.
	PageSize int
	// MinTrust is the lowest trust of the fragments, 0 to 1. Nil: any.
	MinTrust *float64
	// Sources: only fragments from one of these. Empty: any.
	Sources []SourceKind
}

// LoadedDocument is a document with its text and, if requested, all its fragments.
type LoadedDocument struct {
	*Document
	// Fragments of the document, in order. Empty unless requested.
	Fragments []*Fragment
	// NamespaceRevision that the answer reflects.
	NamespaceRevision int64
}

// HandledMessage is the result of [Client.HandleMessage].
type HandledMessage struct {
	// Outcome for the message.
	Outcome HandleMessageOutcome
	// Feedback is a message for the user. Empty: the message is not a command.
	Feedback string
	// Command that was recognised. Empty: none.
	Command string
	// Message that was chosen. Nil: none.
	Message *Item
	// Document that the message is saved as, with its text. Nil: it is not saved.
	Document *Document
	// Fragments of the document, in order. Empty: it is not saved.
	Fragments []*Fragment
	// Degraded lists what the server could not do, such as embedding the fragments. Empty: it did
	// everything.
	Degraded []Degradation
	// Revision of the namespace that the answer reflects; after the write, if there was one.
	Revision int64
}

// RemovedDocument reports what was deleted with a document.
type RemovedDocument struct {
	// FragmentCount is the number of removed fragments.
	FragmentCount int64
	// Revision of the namespace afterwards.
	Revision int64
	// DerivedCount is the number of further items that were removed because they were made only from these.
	DerivedCount int64
}

// FragmentResults are the fragments found, and facts about the search.
type FragmentResults struct {
	// Results, best first.
	Results []FragmentResult
	// Degraded lists what the server could not do for this answer. Empty: it did everything.
	Degraded []Degradation
	// Revision of the namespace that the answer reflects.
	Revision int64
}

// FragmentResult is one fragment found.
type FragmentResult struct {
	// Fragment that was found.
	Fragment *Fragment
	// Document that it belongs to, without its text.
	Document *Document
	// Score of the fragment, higher is better.
	Score float64
	// Explanation holds the contributions that add up to the score. Empty unless requested.
	Explanation []Contribution
}
