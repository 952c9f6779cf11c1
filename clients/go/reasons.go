package memory

// Reason says why a call failed, for programs to act on. A reason never changes its meaning; a newer
// server may send ones that are not in this list.
type Reason string

// Why calls fail. The code that each comes with is in the comment of the server's ErrorReason.
const (
	// ReasonInvalidField: a field of the request is missing, malformed or out of range.
	ReasonInvalidField Reason = "INVALID_FIELD"
	// ReasonDimensionMismatch: a vector has another dimension than the namespace.
	ReasonDimensionMismatch Reason = "DIMENSION_MISMATCH"
	// ReasonInvalidPageToken: a page token was not issued by this server for this request.
	ReasonInvalidPageToken Reason = "INVALID_PAGE_TOKEN"
	// ReasonLimitExceeded: a value or a message is larger than a limit allows.
	ReasonLimitExceeded Reason = "LIMIT_EXCEEDED"
	// ReasonOverloaded: the server has too much to do; retry after the error's RetryAfter.
	ReasonOverloaded Reason = "OVERLOADED"
	// ReasonItemNotFound: no item of this id is in the namespace.
	ReasonItemNotFound Reason = "ITEM_NOT_FOUND"
	// ReasonStateNotFound: no state of this key is in the namespace.
	ReasonStateNotFound Reason = "STATE_NOT_FOUND"
	// ReasonNamespaceNotFound: nothing was ever written to the namespace, or it was deleted.
	ReasonNamespaceNotFound Reason = "NAMESPACE_NOT_FOUND"
	// ReasonItemAlreadyExists: an item of this id exists already.
	ReasonItemAlreadyExists Reason = "ITEM_ALREADY_EXISTS"
	// ReasonVersionMismatch: the expected version is not the current one, which is in
	// Metadata["current_version"].
	ReasonVersionMismatch Reason = "VERSION_MISMATCH"
	// ReasonRevisionMismatch: the expected revision is not the item's, which is in
	// Metadata["current_revision"].
	ReasonRevisionMismatch Reason = "REVISION_MISMATCH"
	// ReasonRequestIDReused: the request id was used before with another request.
	ReasonRequestIDReused Reason = "REQUEST_ID_REUSED"
	// ReasonEmbedderUnavailable: the embedder did not answer; nothing was written.
	ReasonEmbedderUnavailable Reason = "EMBEDDER_UNAVAILABLE"
	// ReasonEmbedderRequired: the request needs text to be embedded, and there is no embedder for it.
	ReasonEmbedderRequired Reason = "EMBEDDER_REQUIRED"
	// ReasonStorageUnavailable: the records could not be read or written; a write may be retried.
	ReasonStorageUnavailable Reason = "STORAGE_UNAVAILABLE"
	// ReasonStorageFull: the disk is full; nothing was written.
	ReasonStorageFull Reason = "STORAGE_FULL"
	// ReasonUnsupported: this server does not offer what was asked for.
	ReasonUnsupported Reason = "UNSUPPORTED"
	// ReasonShuttingDown: the server is stopping.
	ReasonShuttingDown Reason = "SHUTTING_DOWN"
	// ReasonInternal: the server failed in a way it did not foresee.
	ReasonInternal Reason = "INTERNAL"
	// ReasonLLMUnavailable: the language model did not answer, or not in a way that could be read.
	ReasonLLMUnavailable Reason = "LLM_UNAVAILABLE"
	// ReasonLLMRequired: the request needs a language model, and the server runs without one.
	ReasonLLMRequired Reason = "LLM_REQUIRED"
	// ReasonMemoryNotFound: no fact of this id is in the namespace.
	ReasonMemoryNotFound Reason = "MEMORY_NOT_FOUND"
	// ReasonDocumentNotFound: no document of this id is in the namespace.
	ReasonDocumentNotFound Reason = "DOCUMENT_NOT_FOUND"
	// ReasonUnauthenticated: the call carries no credential, or one that is not valid.
	ReasonUnauthenticated Reason = "UNAUTHENTICATED"
	// ReasonPermissionDenied: the credential does not allow the call on this namespace.
	ReasonPermissionDenied Reason = "PERMISSION_DENIED"
	// ReasonDeadlineExceeded: the deadline passed before the work began; nothing was written.
	ReasonDeadlineExceeded Reason = "DEADLINE_EXCEEDED"
	// ReasonDocumentAlreadyExists: a document of this id exists already.
	ReasonDocumentAlreadyExists Reason = "DOCUMENT_ALREADY_EXISTS"
	// ReasonWriteRejected: the server's write policy does not let in what Metadata["field"] names; nothing was
	// written.
	ReasonWriteRejected Reason = "WRITE_REJECTED"
	// ReasonQuarantinedNotFound: no write of this id is in quarantine, or no more.
	ReasonQuarantinedNotFound Reason = "QUARANTINED_NOT_FOUND"
)
