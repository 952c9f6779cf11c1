package memory

import (
	"context"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// VersionKind says what became of a version, or how it was removed.
type VersionKind string

// The kinds of versions.
const (
	VersionCurrent  VersionKind = "current"
	VersionReplaced VersionKind = "replaced"
	VersionRedacted VersionKind = "redacted" // Replaced, and its content was removed.
	VersionDeleted  VersionKind = "deleted"
	VersionExpired  VersionKind = "expired"
)

// Version is what versions of items and states have in common.
type Version struct {
	// Revision of the namespace at which it was written or removed.
	Revision int64
	// Kind is what became of it.
	Kind VersionKind
	// Time is when it was written or deleted. Zero: not recorded.
	Time time.Time
	// Writer is the name of the credential that wrote or deleted it. Empty: none, or not recorded.
	Writer string
	// CredentialID is the id of that credential.
	CredentialID string
}

// ItemVersion is a version of an item, or its removal.
type ItemVersion struct {
	Version
	// Item in this version. Nil: redacted or removed.
	Item *Item
}

// StateVersion is a version of a state, or its removal.
type StateVersion struct {
	Version
	// Number is the version of the key. 0: a removal.
	Number int64
	// Entry in this version. Nil: redacted or removed.
	Entry *StateEntry
}

// GetAt returns an item as it was written at a revision, see [Client.ListItemVersions]. It returns
// [ErrNotFound] if there is no such item, or if that version is not kept.
func (c *Client) GetAt(ctx context.Context, id MemoryItemId, revision int64) (*Item, error) {
	request := &memoryv1.GetRequest{Namespace: c.namespace, Id: string(id), Revision: revision}
	response, err := invoke(ctx, c, c.memories.Get, request)
	if err != nil {
		return nil, err
	}
	return itemTo(response.GetItem()), nil
}

// LoadStateAt returns the entry of a key as it was written at a revision, see [Client.ListStateVersions].
// It returns [ErrNotFound] if there is no such key, or if that version is not kept.
func (c *Client) LoadStateAt(ctx context.Context, key string, revision int64) (*StateEntry, error) {
	request := &memoryv1.LoadStateRequest{Namespace: c.namespace, Key: key, Revision: revision}
	response, err := invoke(ctx, c, c.states.LoadState, request)
	if err != nil {
		return nil, err
	}
	return entryTo(response.GetEntry()), nil
}

// ListItemVersions yields the versions and removals of an item, newest first; pages are fetched as needed.
// Replaced versions are kept for 30 days, unless the server has another setting; a deletion removes all. It
// yields [ErrNotFound] if there is no such item, and there was none. It takes [WithEntriesPerPage].
func (c *Client) ListItemVersions(
	ctx context.Context, id MemoryItemId, options ...ListOption,
) iter.Seq2[ItemVersion, error] {
	return paged(func(token string) ([]ItemVersion, string, error) {
		pageSize, err := versionsPerPage(options)
		if err != nil {
			return nil, "", err
		}
		response, err := invoke(ctx, c, c.memories.ListItemVersions, &memoryv1.ListItemVersionsRequest{
			Namespace: c.namespace, Id: string(id), PageSize: pageSize, PageToken: token,
		})
		var versions []ItemVersion
		for _, version := range response.GetVersions() {
			var item *Item
			if version.GetItem() != nil {
				item = itemTo(version.GetItem())
			}
			versions = append(versions, ItemVersion{versionTo(version), item})
		}
		return versions, response.GetNextPageToken(), err
	})
}

// ListStateVersions yields the versions and removals of a key, newest first; pages are fetched as needed. It
// yields [ErrNotFound] if there is no such key, and there was none. It takes [WithEntriesPerPage].
func (c *Client) ListStateVersions(
	ctx context.Context, key string, options ...ListOption,
) iter.Seq2[StateVersion, error] {
	return paged(func(token string) ([]StateVersion, string, error) {
		pageSize, err := versionsPerPage(options)
		if err != nil {
			return nil, "", err
		}
		response, err := invoke(ctx, c, c.states.ListStateVersions, &memoryv1.ListStateVersionsRequest{
			Namespace: c.namespace, Key: key, PageSize: pageSize, PageToken: token,
		})
		var versions []StateVersion
		for _, version := range response.GetVersions() {
			found := StateVersion{versionTo(version), version.GetVersion(), entryTo(version.GetEntry())}
			versions = append(versions, found)
		}
		return versions, response.GetNextPageToken(), err
	})
}

// RedactVersion removes the content of a replaced version of an item and returns the namespace's revision.
// It returns [ErrNotFound] if there is no such item or version, and [ErrFailedPrecondition] if it is the
// current one.
func (c *Client) RedactVersion(ctx context.Context, id MemoryItemId, revision int64) (int64, error) {
	response, err := invoke(ctx, c, c.memories.RedactVersion, &memoryv1.RedactVersionRequest{
		Namespace: c.namespace, Id: string(id), Revision: revision,
	})
	return response.GetRevision(), err
}

// RedactStateVersion removes the value of a replaced version of a key and returns the namespace's revision.
// It returns [ErrNotFound] if there is no such key or version, and [ErrFailedPrecondition] if it is the
// current one.
func (c *Client) RedactStateVersion(ctx context.Context, key string, revision int64) (int64, error) {
	response, err := invoke(ctx, c, c.states.RedactStateVersion, &memoryv1.RedactStateVersionRequest{
		Namespace: c.namespace, Key: key, Revision: revision,
	})
	return response.GetRevision(), err
}

func versionsPerPage(options []ListOption) (int32, error) {
	preview, pageSize, err := listSettingsFrom(options)
	if err == nil && preview {
		err = invalidArgument("include_preview", "versions have no previews")
	}
	return pageSize, err
}

func versionTo(version interface {
	GetRevision() int64
	GetKind() memoryv1.VersionKind
	GetTime() *timestamppb.Timestamp
	GetWriter() string
	GetCredentialId() string
}) Version {
	return Version{
		Revision:     version.GetRevision(),
		Kind:         enumTo[VersionKind](version.GetKind(), "VERSION_KIND_"),
		Time:         timeTo(version.GetTime()),
		Writer:       version.GetWriter(),
		CredentialID: version.GetCredentialId(),
	}
}
