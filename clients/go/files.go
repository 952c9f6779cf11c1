package memory

import "time"

// FileEdit is an edit of a part of a file: a *[ReplaceText], *[InsertText] or *[AppendText].
type FileEdit interface {
	fileEdit()
}

// ReplaceText replaces a text that occurs exactly once in a file.
type ReplaceText struct {
	// OldText to replace, which may have several lines. Required.
	OldText string
	// NewText in its place. Empty: the old text is removed.
	NewText string
}

// InsertText inserts a text as separate lines: missing line breaks before and after it are added.
type InsertText struct {
	// AfterLine is the line to insert after. 0: before the first.
	AfterLine int
	// Text to insert. Required.
	Text string
}

// AppendText adds a text to the end of a file.
type AppendText struct {
	// Text to add. Required. It continues the last line, unless that ends with a line break.
	Text string
}

func (*ReplaceText) fileEdit() {}
func (*InsertText) fileEdit()  {}
func (*AppendText) fileEdit()  {}

// ReadFileOptions are the optional arguments of [Client.ReadFile].
type ReadFileOptions struct {
	// StartLine is the first line to return, from 1. 0: the first of the file.
	StartLine int
	// EndLine is the last line to return, inclusive. 0 or -1: the last of the file.
	EndLine int
	// Version to read. 0: the current one.
	Version int64
	// MaxCharacters is the maximum number of Unicode code points; the content ends with the last whole line
	// that fits. 0: no limit.
	MaxCharacters int
}

// FileContent is a file, or a range of its lines. Times are in UTC.
type FileContent struct {
	// Content is the lines, with their line breaks, unchanged.
	Content string
	// Version that was read: the revision of the namespace at which it was written.
	Version int64
	// SHA256 of the whole file, in hexadecimal.
	SHA256 string
	// LineCount of the whole file.
	LineCount int
	// SizeBytes of the whole file, in UTF-8.
	SizeBytes int64
	// StartLine is the first line of the content, from 1. 0: the file is empty.
	StartLine int
	// EndLine is the last line of the content. 0: the file is empty.
	EndLine int
	// Truncated reports that the content ends early because of MaxCharacters.
	Truncated bool
	// CreateTime is when the file was created.
	CreateTime time.Time
	// UpdateTime is when this version was written.
	UpdateTime time.Time
	// Revision of the namespace that the answer reflects.
	Revision int64
	// Provenance records its writer and its trust. Nil: written by a caller without a name, and therefore
	// trusted.
	Provenance *Provenance
}

// WrittenFile is a file that was written or edited.
type WrittenFile struct {
	// Version that was written. 0: it waits for a review.
	Version int64
	// SHA256 of the whole content, in hexadecimal.
	SHA256 string
	// LineCount of the file.
	LineCount int
	// SizeBytes of the file, in UTF-8.
	SizeBytes int64
	// Created reports that the file did not exist before.
	Created bool
	// StartLine is, after an edit, the line in which the change begins, from 1.
	StartLine int
	// Revision of the namespace after the write.
	Revision int64
	// Degraded lists what the server could not do, such as embedding the text. Empty: it did everything.
	Degraded []Degradation
}

// RenamedFiles reports what a rename changed.
type RenamedFiles struct {
	// RenamedCount is the number of files that have a new path.
	RenamedCount int64
	// Version of a renamed file. 0: it was a folder.
	Version int64
	// Revision of the namespace after the write.
	Revision int64
}

// DeletedFiles reports what a deletion removed.
type DeletedFiles struct {
	// DeletedCount is the number of files that were deleted.
	DeletedCount int64
	// Revision of the namespace after the deletion.
	Revision int64
}

// ListFilesOptions are the optional arguments of [Client.ListFiles].
type ListFilesOptions struct {
	// Path of the folder to list, or of a file. Empty: all files.
	Path string
	// Depth is how many levels to list; deeper files count in their folder. 0: all.
	Depth int
	// PageSize is how many entries are fetched at a time. 0: 100. At most 1000.
	PageSize int
}

// FileEntry is a file or a folder.
type FileEntry struct {
	// Path of the file or the folder.
	Path string
	// IsFolder reports that it is a folder.
	IsFolder bool
	// SizeBytes in UTF-8; of a folder the sum of all files below it.
	SizeBytes int64
	// FileCount is the number of files below a folder. 0: it is a file.
	FileCount int64
	// Version of a file. 0: it is a folder.
	Version int64
	// CreateTime is when the file, or the first one below the folder, was created. UTC.
	CreateTime time.Time
	// UpdateTime is when the file, or one below the folder, was last written. UTC.
	UpdateTime time.Time
}

// SearchFilesOptions are the optional arguments of [Client.SearchFiles].
type SearchFilesOptions struct {
	// Path: only this file, or the files below this folder. Empty: all.
	Path string
	// Limit is the maximum number of results, at most 100. Nil: 5.
	Limit *int
	// MaxCharacters is the maximum number of Unicode code points of all texts together. 0: no limit.
	MaxCharacters int
}

// FileResults are the pieces of files found, and facts about the search.
type FileResults struct {
	// Results, best first.
	Results []FileResult
	// Degraded lists what the server could not do for this answer. Empty: it did everything.
	Degraded []Degradation
	// Revision of the namespace that the answer reflects.
	Revision int64
}

// FileResult is one piece of a file that was found.
type FileResult struct {
	// Path of the file.
	Path string
	// StartLine is the line in which the text begins, from 1.
	StartLine int
	// EndLine is the line in which it ends.
	EndLine int
	// Text of the piece, unchanged.
	Text string
	// Score of the piece, higher is better.
	Score float64
	// Version of the file.
	Version int64
}

// FileVersion is a version of a file.
type FileVersion struct {
	// Version is the revision of the namespace at which it was written.
	Version int64
	// Kind is what became of it.
	Kind VersionKind
	// Time is when it was written. UTC.
	Time time.Time
	// Writer is the name of the credential that wrote it. Empty: none.
	Writer string
	// CredentialID is the id of that credential.
	CredentialID string
	// Path of the file in this version. Empty: redacted.
	Path string
	// SizeBytes in UTF-8.
	SizeBytes int64
}
