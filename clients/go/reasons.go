package memory

// Reason is the cause of a failed call, for programs. A reason never changes its meaning; a newer server
// may send others than these.
type Reason string

// The reasons. The protos' ErrorReason documents the code of each.
const (
	// ReasonInvalidField: a field of the request is missing, malformed or out of range.
	ReasonInvalidField Reason = "INVALID_FIELD"
	// ReasonDimensionMismatch: the vector's dimension is not the namespace's.
	ReasonDimensionMismatch Reason = "DIMENSION_MISMATCH"
	// ReasonInvalidPageToken: a page token was not issued by this server for this request.
	ReasonInvalidPageToken Reason = "INVALID_PAGE_TOKEN"
	// ReasonLimitExceeded: a value or a message exceeds a limit.
	ReasonLimitExceeded Reason = "LIMIT_EXCEEDED"
	// ReasonOverloaded: the server is overloaded; retry after the error's RetryAfter.
	ReasonOverloaded Reason = "OVERLOADED"
	// ReasonItemNotFound: the namespace has no item with this id.
	ReasonItemNotFound Reason = "ITEM_NOT_FOUND"
	// ReasonStateNotFound: the namespace has no state with this key.
	ReasonStateNotFound Reason = "STATE_NOT_FOUND"
	// ReasonNamespaceNotFound: nothing was ever written to the namespace, or it was deleted.
	ReasonNamespaceNotFound Reason = "NAMESPACE_NOT_FOUND"
	// ReasonItemAlreadyExists: an item with this id already exists.
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
	// ReasonUnsupported: this server does not support the call.
	ReasonUnsupported Reason = "UNSUPPORTED"
	// ReasonShuttingDown: the server is stopping.
	ReasonShuttingDown Reason = "SHUTTING_DOWN"
	// ReasonInternal: the server failed unexpectedly.
	ReasonInternal Reason = "INTERNAL"
	// ReasonLLMUnavailable: the language model did not answer, or its answer was unusable.
	ReasonLLMUnavailable Reason = "LLM_UNAVAILABLE"
	// ReasonLLMRequired: the request needs a language model, and the server runs without one.
	ReasonLLMRequired Reason = "LLM_REQUIRED"
	// ReasonMemoryNotFound: the namespace has no fact with this id.
	ReasonMemoryNotFound Reason = "MEMORY_NOT_FOUND"
	// ReasonDocumentNotFound: the namespace has no document with this id.
	ReasonDocumentNotFound Reason = "DOCUMENT_NOT_FOUND"
	// ReasonUnauthenticated: the call has no credential, or an invalid one.
	ReasonUnauthenticated Reason = "UNAUTHENTICATED"
	// ReasonPermissionDenied: the credential does not allow the call on this namespace.
	ReasonPermissionDenied Reason = "PERMISSION_DENIED"
	// ReasonDeadlineExceeded: the deadline passed before the work began; nothing was written.
	ReasonDeadlineExceeded Reason = "DEADLINE_EXCEEDED"
	// ReasonDocumentAlreadyExists: a document with this id already exists.
	ReasonDocumentAlreadyExists Reason = "DOCUMENT_ALREADY_EXISTS"
	// ReasonWriteRejected: the server's write policy rejects the field in Metadata["field"]; nothing was
	// written.
	ReasonWriteRejected Reason = "WRITE_REJECTED"
	// ReasonQuarantinedNotFound: no write with this id is in quarantine, or it is no longer there.
	ReasonQuarantinedNotFound Reason = "QUARANTINED_NOT_FOUND"
	// ReasonSessionNotFound: the namespace has no session with this id.
	ReasonSessionNotFound Reason = "SESSION_NOT_FOUND"
	// ReasonSessionAlreadyExists: a session with this id already exists.
	ReasonSessionAlreadyExists Reason = "SESSION_ALREADY_EXISTS"
	// ReasonStateAlreadyExists: a state with this key already exists.
	ReasonStateAlreadyExists Reason = "STATE_ALREADY_EXISTS"
	// ReasonVersionNotFound: no version was written at this revision, or it is no longer kept, or redacted.
	ReasonVersionNotFound Reason = "VERSION_NOT_FOUND"
	// ReasonVersionIsCurrent: the current version cannot be redacted.
	ReasonVersionIsCurrent Reason = "VERSION_IS_CURRENT"
	// ReasonFileNotFound: the namespace has no file at this path.
	ReasonFileNotFound Reason = "FILE_NOT_FOUND"
	// ReasonFileAlreadyExists: there is a file or a folder at this path.
	ReasonFileAlreadyExists Reason = "FILE_ALREADY_EXISTS"
	// ReasonFolderNotEmpty: the path is a folder, which only [WithRecursive] deletes.
	ReasonFolderNotEmpty Reason = "FOLDER_NOT_EMPTY"
	// ReasonOccurrenceMismatch: the text to replace does not occur exactly once; Metadata["occurrences"] says
	// how often.
	ReasonOccurrenceMismatch Reason = "OCCURRENCE_MISMATCH"
)
