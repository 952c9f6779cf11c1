package memory

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// StateEntry is a state key, its value and facts about them.
type StateEntry struct {
	// Key of the entry, 1 to 512 bytes.
	Key string
	// Value is any JSON value, with the types of encoding/json: numbers are float64. Nil: null, or
	// omitted, as in lists of keys and after a save.
	Value any
	// Version is the number of writes of the key, from 1. After deletions, a new key begins above the
	// versions of the deleted keys.
	Version int64
	// Description is the purpose of the value. Empty: not given.
	Description string
	// SizeBytes is the size of the value as compact JSON.
	SizeBytes int64
	// Preview is the beginning of the value as JSON, in lists that ask for it.
	Preview string
	// CreateTime is when the key was created.
	CreateTime time.Time
	// UpdateTime is when this version was written.
	UpdateTime time.Time
	// ExpireTime is when the entry expires. Zero: never.
	ExpireTime time.Time
	// Revision of the namespace at which this version was written.
	Revision int64
}

// Decode stores the value in the variable that target points to, as encoding/json would.
func (e *StateEntry) Decode(target any) error {
	text, err := json.Marshal(e.Value)
	if err != nil {
		return fmt.Errorf("state %q: %w", e.Key, err)
	}
	if err := json.Unmarshal(text, target); err != nil {
		return fmt.Errorf("state %q: %w", e.Key, err)
	}
	return nil
}

// ListOption changes how state keys, namespaces or values of labels are listed.
type ListOption func(*listSettings)

type listSettings struct {
	prefix         string
	includePreview bool
	pageSize       int
}

// WithKeyPrefix selects the keys that begin with a prefix in [Client.ListStateKeys].
func WithKeyPrefix(prefix string) ListOption {
	return func(s *listSettings) { s.prefix = prefix }
}

// WithPreviews adds the beginning of each value to [Client.ListStateKeys].
func WithPreviews() ListOption {
	return func(s *listSettings) { s.includePreview = true }
}

// WithEntriesPerPage sets how many entries are fetched at a time, at most 1000. Without it: 100.
func WithEntriesPerPage(entries int) ListOption {
	return func(s *listSettings) { s.pageSize = entries }
}

func listSettingsFrom(options []ListOption) (includePreview bool, pageSize int32, err error) {
	settings, pageSize, err := keyListSettingsFrom(options)
	if err == nil && settings.prefix != "" {
		err = invalidArgument("prefix", "only ListStateKeys takes WithKeyPrefix")
	}
	return settings.includePreview, pageSize, err
}

func keyListSettingsFrom(options []ListOption) (settings listSettings, pageSize int32, err error) {
	apply(&settings, options)
	pageSize, err = int32From(settings.pageSize, "page_size")
	return settings, pageSize, err
}

// SaveState writes a value under a key, creating the key or raising its version. The value is
// anything that encoding/json can write, at most 1 MiB; nil is JSON's null. It returns the entry as
// it is now, without its value.
//
// It takes [WithExpectedVersion], with which it returns [ErrConflict] if the key's version differs,
// [WithTTL], [WithDescription] and [WithRequestID].
func (c *Client) SaveState(ctx context.Context, key string, value any, options ...WriteOption) (*StateEntry, error) {
	settings, err := writeSettingsFrom(options, expectedVersionOption, ttlOption, descriptionOption)
	if err != nil {
		return nil, err
	}
	converted, err := valueFrom(value, "value")
	if err != nil {
		return nil, err
	}
	request := &memoryv1.SaveStateRequest{
		Namespace:       c.namespace,
		Key:             key,
		Value:           converted,
		ExpectedVersion: settings.expectedVersion,
		Description:     settings.description,
		RequestId:       settings.requestID,
	}
	if settings.ttl != nil {
		request.Ttl = durationpb.New(*settings.ttl)
	}
	response, err := invoke(ctx, c, c.states.SaveState, request)
	if err != nil {
		return nil, err
	}
	return entryTo(response.GetEntry()), nil
}

// LoadState returns the entry of a key, with its value. It returns [ErrNotFound] if there is no such
// key.
func (c *Client) LoadState(ctx context.Context, key string) (*StateEntry, error) {
	request := &memoryv1.LoadStateRequest{Namespace: c.namespace, Key: key}
	response, err := invoke(ctx, c, c.states.LoadState, request)
	if err != nil {
		return nil, err
	}
	return entryTo(response.GetEntry()), nil
}

// ListStateKeys yields all entries without their values, in the order of the keys' bytes; pages are
// fetched as needed. It takes [WithKeyPrefix], [WithPreviews] and [WithEntriesPerPage].
func (c *Client) ListStateKeys(ctx context.Context, options ...ListOption) iter.Seq2[*StateEntry, error] {
	return paged(func(token string) ([]*StateEntry, string, error) {
		settings, pageSize, err := keyListSettingsFrom(options)
		if err != nil {
			return nil, "", err
		}
		response, err := invoke(ctx, c, c.states.ListStateKeys, &memoryv1.ListStateKeysRequest{
			Namespace: c.namespace, Prefix: settings.prefix, IncludePreview: settings.includePreview,
			PageSize: pageSize, PageToken: token,
		})
		return entriesTo(response.GetEntries()), response.GetNextPageToken(), err
	})
}

// SearchState yields the entries whose whole key matches a glob such as "plan/*", with their values,
// in the order of the keys' bytes: "*" matches any characters, "?" any one, "[abc]" one of these,
// "[!abc]" any one except these. It takes [WithEntriesPerPage].
func (c *Client) SearchState(ctx context.Context, pattern string, options ...ListOption) iter.Seq2[*StateEntry, error] {
	return paged(func(token string) ([]*StateEntry, string, error) {
		preview, pageSize, err := listSettingsFrom(options)
		if err != nil {
			return nil, "", err
		}
		if preview {
			return nil, "", invalidArgument("include_preview", "a search takes no WithPreviews: it returns the values")
		}
		response, err := invoke(ctx, c, c.states.SearchState, &memoryv1.SearchStateRequest{
			Namespace: c.namespace, Pattern: pattern, PageSize: pageSize, PageToken: token,
		})
		return entriesTo(response.GetEntries()), response.GetNextPageToken(), err
	})
}

// DeleteState removes a key and returns the namespace's revision. It returns [ErrNotFound] if there is
// no such key. It takes [WithExpectedVersion] and [WithRequestID].
func (c *Client) DeleteState(ctx context.Context, key string, options ...WriteOption) (revision int64, err error) {
	settings, err := writeSettingsFrom(options, expectedVersionOption)
	if err != nil {
		return 0, err
	}
	response, err := invoke(ctx, c, c.states.DeleteState, &memoryv1.DeleteStateRequest{
		Namespace:       c.namespace,
		Key:             key,
		ExpectedVersion: settings.expectedVersion,
		RequestId:       settings.requestID,
	})
	return response.GetRevision(), err
}

// RenameState gives a value another key; its times, description and earlier versions go along. It
// returns the entry under its new key, without its value. It returns [ErrNotFound] if there is no such
// key, and [ErrAlreadyExists] if the new one exists. It takes [WithExpectedVersion] and [WithRequestID].
func (c *Client) RenameState(ctx context.Context, key, newKey string, options ...WriteOption) (*StateEntry, error) {
	settings, err := writeSettingsFrom(options, expectedVersionOption)
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.states.RenameState, &memoryv1.RenameStateRequest{
		Namespace:       c.namespace,
		Key:             key,
		NewKey:          newKey,
		ExpectedVersion: settings.expectedVersion,
		RequestId:       settings.requestID,
	})
	if err != nil {
		return nil, err
	}
	return entryTo(response.GetEntry()), nil
}

// ClearState removes every key of the namespace, but not its items. It takes [WithRequestID].
func (c *Client) ClearState(ctx context.Context, options ...WriteOption) (Removed, error) {
	settings, err := writeSettingsFrom(options)
	if err != nil {
		return Removed{}, err
	}
	request := &memoryv1.ClearStateRequest{Namespace: c.namespace, RequestId: settings.requestID}
	response, err := invoke(ctx, c, c.states.ClearState, request)
	return Removed{StateCount: response.GetRemovedCount(), Revision: response.GetRevision()}, err
}

// importedEntryFrom converts a state entry to be imported, without the fields that the server sets.
func importedEntryFrom(entry *StateEntry, where string) (*memoryv1.StateEntry, error) {
	value, err := valueFrom(entry.Value, where+".value")
	if err != nil {
		return nil, err
	}
	return &memoryv1.StateEntry{
		Key:         entry.Key,
		Value:       value,
		Description: entry.Description,
		ExpireTime:  timeFrom(entry.ExpireTime),
	}, nil
}

// entryTo converts to a state entry. Nil stays nil.
func entryTo(entry *memoryv1.StateEntry) *StateEntry {
	if entry == nil {
		return nil
	}
	return &StateEntry{
		Key:         entry.GetKey(),
		Value:       valueTo(entry.GetValue()),
		Version:     entry.GetVersion(),
		Description: entry.GetDescription(),
		SizeBytes:   entry.GetSizeBytes(),
		Preview:     entry.GetPreview(),
		CreateTime:  timeTo(entry.GetCreateTime()),
		UpdateTime:  timeTo(entry.GetUpdateTime()),
		ExpireTime:  timeTo(entry.GetExpireTime()),
		Revision:    entry.GetRevision(),
	}
}

func entriesTo(entries []*memoryv1.StateEntry) []*StateEntry {
	converted := make([]*StateEntry, len(entries))
	for index, entry := range entries {
		converted[index] = entryTo(entry)
	}
	return converted
}
