package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

var stateAdapters = map[string]adapter{
	"StateService/SaveState":     saveState,
	"StateService/LoadState":     loadState,
	"StateService/ListStateKeys": listStateKeys,
	"StateService/SearchState":   searchState,
	"StateService/DeleteState":   deleteState,
	"StateService/RenameState":   renameState,
	"StateService/ClearState":    clearState,
}

func saveState(client *memory.Client, in *fields) call {
	client, options := scoped(client, in), writeOptions(in)
	in.required("value")
	key, value := in.text("key"), in.value("value")
	if ttl := in.optionalDuration("ttl"); ttl != nil {
		options = append(options, memory.WithTTL(*ttl))
	}
	if description := in.optionalText("description"); description != nil {
		options = append(options, memory.WithDescription(*description))
	}
	return func(ctx context.Context) (proto.Message, error) {
		entry, err := client.SaveState(ctx, key, value, options...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.SaveStateResponse{Entry: entryOf(entry), Revision: entry.Revision}, nil
	}
}

func loadState(client *memory.Client, in *fields) call {
	client, key, revision := scoped(client, in), in.text("key"), in.integer("revision")
	return func(ctx context.Context) (proto.Message, error) {
		if revision != 0 {
			entry, err := client.LoadStateAt(ctx, key, revision)
			return &memoryv1.LoadStateResponse{Entry: entryOf(entry)}, err
		}
		entry, err := client.LoadState(ctx, key)
		return &memoryv1.LoadStateResponse{Entry: entryOf(entry)}, err
	}
}

func listStateKeys(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	options := []memory.ListOption{memory.WithEntriesPerPage(in.number("page_size"))}
	if prefix := in.text("prefix"); prefix != "" {
		options = append(options, memory.WithKeyPrefix(prefix))
	}
	if in.flag("include_preview") {
		options = append(options, memory.WithPreviews())
	}
	return func(ctx context.Context) (proto.Message, error) {
		entries, err := collected(client.ListStateKeys(ctx, options...), entryOf)
		return &memoryv1.ListStateKeysResponse{Entries: entries}, err
	}
}

func searchState(client *memory.Client, in *fields) call {
	client, pattern := scoped(client, in), in.text("pattern")
	option := memory.WithEntriesPerPage(in.number("page_size"))
	return func(ctx context.Context) (proto.Message, error) {
		entries, err := collected(client.SearchState(ctx, pattern, option), entryOf)
		return &memoryv1.SearchStateResponse{Entries: entries}, err
	}
}

func deleteState(client *memory.Client, in *fields) call {
	client, key, options := scoped(client, in), in.text("key"), writeOptions(in)
	return func(ctx context.Context) (proto.Message, error) {
		revision, err := client.DeleteState(ctx, key, options...)
		return &memoryv1.DeleteStateResponse{Revision: revision}, err
	}
}

func renameState(client *memory.Client, in *fields) call {
	client, options := scoped(client, in), writeOptions(in)
	key, newKey := in.text("key"), in.text("new_key")
	return func(ctx context.Context) (proto.Message, error) {
		entry, err := client.RenameState(ctx, key, newKey, options...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.RenameStateResponse{Entry: entryOf(entry), Revision: entry.Revision}, nil
	}
}

func clearState(client *memory.Client, in *fields) call {
	client, options := scoped(client, in), writeOptions(in)
	return func(ctx context.Context) (proto.Message, error) {
		removed, err := client.ClearState(ctx, options...)
		return &memoryv1.ClearStateResponse{RemovedCount: removed.StateCount, Revision: removed.Revision}, err
	}
}

// importedEntry reads a state to be imported, in the form of an export.
func (f *fields) importedEntry() *memory.StateEntry {
	return &memory.StateEntry{
		Key:         f.text("key"),
		Value:       f.value("value"),
		Version:     f.integer("version"),
		Description: f.text("description"),
		SizeBytes:   f.integer("size_bytes"),
		Preview:     f.text("preview"),
		CreateTime:  f.time("create_time"),
		UpdateTime:  f.time("update_time"),
		ExpireTime:  f.time("expire_time"),
		Revision:    f.integer("revision"),
	}
}

func entryOf(entry *memory.StateEntry) *memoryv1.StateEntry {
	if entry == nil {
		return nil
	}
	return &memoryv1.StateEntry{
		Key:         entry.Key,
		Version:     entry.Version,
		UpdateTime:  timeOf(entry.UpdateTime),
		SizeBytes:   entry.SizeBytes,
		Value:       valueOf(entry.Value),
		Description: entry.Description,
		ExpireTime:  timeOf(entry.ExpireTime),
		CreateTime:  timeOf(entry.CreateTime),
		Preview:     entry.Preview,
		Revision:    entry.Revision,
	}
}
