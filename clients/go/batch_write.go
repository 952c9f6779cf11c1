package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// WriteOperation is one operation of [Client.BatchWrite]: an *[AddOperation], *[UpdateOperation],
// *[DeleteOperation], *[DeleteWhereOperation], *[SaveStateOperation], *[DeleteStateOperation],
// *[WriteFileOperation], *[EditFileOperation], *[RenameFileOperation] or *[DeleteFileOperation].
type WriteOperation interface {
	// convert returns the operation as the server takes it; where names it in errors.
	convert(where string) (*memoryv1.WriteOperation, error)
}

// AddOperation adds an item, as [Client.AddItem] does.
type AddOperation struct {
	// Item to add. Required.
	Item *Item
	// OnDuplicate says what to do if an item with this id exists. Empty: [DuplicateFail].
	OnDuplicate OnDuplicate
}

// UpdateOperation changes fields of an item, as [Client.Update] does.
type UpdateOperation struct {
	// Item has the id of the item to change, and the new values. Required.
	Item *Item
	// Fields to change, as in [WithFields]. Empty: those that are set in Item.
	Fields []string
	// ExpectedRevision: update only if this is the item's revision. Nil: in any case.
	ExpectedRevision *int64
}

// DeleteOperation deletes an item, as [Client.Delete] does.
type DeleteOperation struct {
	// ID of the item. Required.
	ID MemoryItemId
	// ExpectedRevision: delete only if this is the item's revision. Nil: in any case.
	ExpectedRevision *int64
	// AllowMissing does nothing if there is no such item. False: the batch fails with [ErrNotFound].
	AllowMissing bool
	// KeepDerived keeps what was made only from the item. False: that is deleted too, except items that
	// another operation names.
	KeepDerived bool
}

// DeleteWhereOperation deletes all items that match the conditions, as [Client.DeleteWhere] does, except
// those that another operation of the batch names. All of them in a batch may match 10,000 items; for more,
// the batch fails with [ErrLimitExceeded].
type DeleteWhereOperation DeleteConditions

// SaveStateOperation saves a state, as [Client.SaveState] does.
type SaveStateOperation struct {
	// Key to write. Required.
	Key string
	// Value is anything that encoding/json can write; nil is JSON's null.
	Value any
	// ExpectedVersion: write only if this is the key's version; 0: only if the key does not exist. Nil: in
	// any case.
	ExpectedVersion *int64
	// TTL is the time until the entry expires. 0: it never does.
	TTL time.Duration
	// Description is the purpose of the value. Nil: the current description stays.
	Description *string
}

// DeleteStateOperation deletes a state, as [Client.DeleteState] does.
type DeleteStateOperation struct {
	// Key to delete. Required.
	Key string
	// ExpectedVersion: delete only if this is the key's version. Nil: in any case.
	ExpectedVersion *int64
	// AllowMissing does nothing if there is no such key. False: the batch fails with [ErrNotFound].
	AllowMissing bool
}

// WriteFileOperation writes a file, as [Client.WriteFile] does. Of the operations on files, none may name
// the path of another, nor a folder of it.
type WriteFileOperation struct {
	// Path of the file. Required.
	Path string
	// Content of the file.
	Content string
	// ExpectedVersion: write only if this is the file's version; 0: only if there is no such file. Nil: in
	// any case.
	ExpectedVersion *int64
	// ExpectedSHA256: write only if the content has this SHA-256, in hexadecimal. Empty: in any case.
	ExpectedSHA256 string
}

// EditFileOperation edits a file, as [Client.EditFile] does.
type EditFileOperation struct {
	// Path of the file. Required.
	Path string
	// Edit of the file. Required.
	Edit FileEdit
	// ExpectedVersion: edit only if this is the file's version. Nil: in any case.
	ExpectedVersion *int64
	// ExpectedSHA256: edit only if the content has this SHA-256, in hexadecimal. Empty: in any case.
	ExpectedSHA256 string
}

// RenameFileOperation renames a file or a folder, as [Client.RenameFile] does.
type RenameFileOperation struct {
	// Path of the file or the folder. Required.
	Path string
	// NewPath of it. Required.
	NewPath string
	// ExpectedVersion: rename only if this is the file's version. Nil: in any case.
	ExpectedVersion *int64
}

// DeleteFileOperation deletes a file or a folder, as [Client.DeleteFile] does.
type DeleteFileOperation struct {
	// Path of the file or the folder. Required.
	Path string
	// Recursive deletes a folder with everything below it.
	Recursive bool
	// ExpectedVersion: delete only if this is the file's version. Nil: in any case.
	ExpectedVersion *int64
}

// BatchWriteResult reports what a batch wrote.
type BatchWriteResult struct {
	// Results of the operations, in their order.
	Results []WriteResult
	// Revision of the namespace after the batch.
	Revision int64
	// Degraded lists what the server could not do, such as embedding the texts. Empty: it did everything.
	Degraded []Degradation
}

// WriteResult reports what one operation of a batch wrote.
type WriteResult struct {
	// ID of the item that was added, updated or skipped. Empty: the operation is another.
	ID MemoryItemId
	// Revision at which the item or the state was written. 0: none was.
	Revision int64
	// Version of the state that was saved, or of the file that was written or renamed. 0: none was.
	Version int64
	// CreateTime of the item or the state that was written. Zero: none was.
	CreateTime time.Time
	// UpdateTime is when the item or the state was written. Zero: none was.
	UpdateTime time.Time
	// ExpireTime is when the item or the state expires. Zero: never, or none was written.
	ExpireTime time.Time
	// Skipped reports that an item was not added because its id exists, see [DuplicateSkip].
	Skipped bool
	// DeletedCount is how many items, states or files were deleted, without derived ones.
	DeletedCount int64
	// DerivedCount is how many other items were deleted because they were made only from those.
	DerivedCount int64
	// RenamedCount is how many files were renamed.
	RenamedCount int64
}

// BatchWrite applies 1 to 1000 operations on items and states, all or none. Their conditions apply to the
// namespace as it is before the batch; then the changes are made in the order of the operations. Two
// operations must not name the same item or the same state.
//
// It returns the errors of the single calls; an [Error]'s Field begins with the operation, as in
// "operations[2].add.item.text". It takes [WithRequestID].
func (c *Client) BatchWrite(
	ctx context.Context, operations []WriteOperation, options ...WriteOption,
) (*BatchWriteResult, error) {
	settings, err := writeSettingsFrom(options)
	if err != nil {
		return nil, err
	}
	request := &memoryv1.BatchWriteRequest{Namespace: c.namespace, RequestId: settings.requestID}
	for index, operation := range operations {
		where := fmt.Sprintf("operations[%d]", index)
		if isNil(operation) {
			return nil, invalidArgument(where, where+": the operation is missing")
		}
		converted, err := operation.convert(where)
		if err != nil {
			return nil, err
		}
		request.Operations = append(request.Operations, converted)
	}
	response, err := invoke(ctx, c, c.memories.BatchWrite, request)
	if err != nil {
		return nil, err
	}
	result := &BatchWriteResult{Revision: response.GetRevision(), Degraded: degradedTo(response.GetDegraded())}
	for _, written := range response.GetResults() {
		result.Results = append(result.Results, writeResultTo(written))
	}
	return result, nil
}
