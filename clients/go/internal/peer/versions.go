package main

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

var versionAdapters = map[string]adapter{
	"MemoryService/ListItemVersions":  listItemVersions,
	"MemoryService/RedactVersion":     redactVersion,
	"StateService/ListStateVersions":  listStateVersions,
	"StateService/RedactStateVersion": redactStateVersion,
}

func listItemVersions(client *memory.Client, in *fields) call {
	client, id := scoped(client, in), memory.MemoryItemId(in.text("id"))
	option := memory.WithEntriesPerPage(in.number("page_size"))
	return func(ctx context.Context) (proto.Message, error) {
		versions, err := collected(client.ListItemVersions(ctx, id, option), itemVersionOf)
		return &memoryv1.ListItemVersionsResponse{Versions: versions}, err
	}
}

func itemVersionOf(version memory.ItemVersion) *memoryv1.ItemVersion {
	return &memoryv1.ItemVersion{
		Revision:     version.Revision,
		Kind:         versionKindOf(version.Kind),
		Time:         timeOf(version.Time),
		Writer:       version.Writer,
		CredentialId: version.CredentialID,
		Item:         itemOf(version.Item),
	}
}

func redactVersion(client *memory.Client, in *fields) call {
	client, id, revision := scoped(client, in), memory.MemoryItemId(in.text("id")), in.integer("revision")
	return func(ctx context.Context) (proto.Message, error) {
		at, err := client.RedactVersion(ctx, id, revision)
		return &memoryv1.RedactVersionResponse{Revision: at}, err
	}
}

func listStateVersions(client *memory.Client, in *fields) call {
	client, key := scoped(client, in), in.text("key")
	option := memory.WithEntriesPerPage(in.number("page_size"))
	return func(ctx context.Context) (proto.Message, error) {
		versions, err := collected(client.ListStateVersions(ctx, key, option), stateVersionOf)
		return &memoryv1.ListStateVersionsResponse{Versions: versions}, err
	}
}

func stateVersionOf(version memory.StateVersion) *memoryv1.StateVersion {
	return &memoryv1.StateVersion{
		Revision:     version.Revision,
		Version:      version.Number,
		Kind:         versionKindOf(version.Kind),
		Time:         timeOf(version.Time),
		Writer:       version.Writer,
		CredentialId: version.CredentialID,
		Entry:        entryOf(version.Entry),
	}
}

func redactStateVersion(client *memory.Client, in *fields) call {
	client, key, revision := scoped(client, in), in.text("key"), in.integer("revision")
	return func(ctx context.Context) (proto.Message, error) {
		at, err := client.RedactStateVersion(ctx, key, revision)
		return &memoryv1.RedactStateVersionResponse{Revision: at}, err
	}
}

func versionKindOf(kind memory.VersionKind) memoryv1.VersionKind {
	return memoryv1.VersionKind(memoryv1.VersionKind_value["VERSION_KIND_"+strings.ToUpper(string(kind))])
}
