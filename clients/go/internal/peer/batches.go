package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

func deleteWhere(client *memory.Client, in *fields) call {
	client, conditions, options := scoped(client, in), in.deleteConditions(), writeOptions(in)
	if in.flag("dry_run") {
		options = append(options, memory.WithDryRun())
	}
	return func(ctx context.Context) (proto.Message, error) {
		var derived int64
		deleted, err := client.DeleteWhere(ctx, conditions, append(options, memory.WithDerivedCount(&derived))...)
		return &memoryv1.DeleteWhereResponse{DeletedCount: deleted, DerivedCount: derived}, err
	}
}

func (f *fields) deleteConditions() memory.DeleteConditions {
	return memory.DeleteConditions{
		SessionID:   f.text("session_id"),
		Labels:      f.labels("labels"),
		Kinds:       each(f.enums("kinds"), kind),
		Filter:      f.text("filter"),
		StartTime:   f.time("start_time"),
		EndTime:     f.time("end_time"),
		KeepDerived: f.flag("keep_derived"),
	}
}

func batchWrite(client *memory.Client, in *fields) call {
	client, options := scoped(client, in), writeOptions(in)
	operations := each(in.childList("operations"), (*fields).operation)
	return func(ctx context.Context) (proto.Message, error) {
		written, err := client.BatchWrite(ctx, operations, options...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.BatchWriteResponse{
			Results:  each(written.Results, writeResultOf),
			Revision: written.Revision,
			Degraded: degradedOf(written.Degraded),
		}, nil
	}
}

// operation reads an operation of a batch. Nil: it is of no kind.
func (f *fields) operation() memory.WriteOperation {
	switch {
	case f.has("add"):
		return f.child("add").addOperation()
	case f.has("update"):
		return f.child("update").updateOperation()
	case f.has("delete"):
		return f.child("delete").deleteOperation()
	case f.has("delete_where"):
		conditions := memory.DeleteWhereOperation(f.child("delete_where").deleteConditions())
		return &conditions
	case f.has("save_state"):
		return f.child("save_state").saveStateOperation()
	case f.has("delete_state"):
		return f.child("delete_state").deleteStateOperation()
	case f.has("write_file"):
		write := f.child("write_file")
		return &memory.WriteFileOperation{
			Path:            write.text("path"),
			Content:         write.text("content"),
			ExpectedVersion: write.optionalInteger("expected_version"),
			ExpectedSHA256:  write.text("expected_sha256"),
		}
	case f.has("edit_file"):
		edit := f.child("edit_file")
		return &memory.EditFileOperation{
			Path:            edit.text("path"),
			Edit:            edit.fileEdit(),
			ExpectedVersion: edit.optionalInteger("expected_version"),
			ExpectedSHA256:  edit.text("expected_sha256"),
		}
	case f.has("rename_file"):
		rename := f.child("rename_file")
		return &memory.RenameFileOperation{
			Path:            rename.text("path"),
			NewPath:         rename.text("new_path"),
			ExpectedVersion: rename.optionalInteger("expected_version"),
		}
	case f.has("delete_file"):
		removal := f.child("delete_file")
		return &memory.DeleteFileOperation{
			Path:            removal.text("path"),
			Recursive:       removal.flag("recursive"),
			ExpectedVersion: removal.optionalInteger("expected_version"),
		}
	}
	return nil
}

func (f *fields) addOperation() *memory.AddOperation {
	return &memory.AddOperation{
		Item: f.child("item").item(), OnDuplicate: memory.OnDuplicate(f.enum("on_duplicate")),
	}
}

func (f *fields) updateOperation() *memory.UpdateOperation {
	return &memory.UpdateOperation{
		Item:             f.child("item").item(),
		Fields:           f.mask("update_mask"),
		ExpectedRevision: f.optionalInteger("expected_revision"),
	}
}

func (f *fields) deleteOperation() *memory.DeleteOperation {
	return &memory.DeleteOperation{
		ID:               memory.MemoryItemId(f.text("id")),
		ExpectedRevision: f.optionalInteger("expected_revision"),
		AllowMissing:     f.flag("allow_missing"),
		KeepDerived:      f.flag("keep_derived"),
	}
}

func (f *fields) saveStateOperation() *memory.SaveStateOperation {
	f.required("value")
	return &memory.SaveStateOperation{
		Key:             f.text("key"),
		Value:           f.value("value"),
		ExpectedVersion: f.optionalInteger("expected_version"),
		TTL:             f.duration("ttl"),
		Description:     f.optionalText("description"),
	}
}

func (f *fields) deleteStateOperation() *memory.DeleteStateOperation {
	return &memory.DeleteStateOperation{
		Key:             f.text("key"),
		ExpectedVersion: f.optionalInteger("expected_version"),
		AllowMissing:    f.flag("allow_missing"),
	}
}

func writeResultOf(result memory.WriteResult) *memoryv1.WriteResult {
	return &memoryv1.WriteResult{
		Id:           string(result.ID),
		Revision:     result.Revision,
		Version:      result.Version,
		CreateTime:   timeOf(result.CreateTime),
		UpdateTime:   timeOf(result.UpdateTime),
		ExpireTime:   timeOf(result.ExpireTime),
		Skipped:      result.Skipped,
		DeletedCount: result.DeletedCount,
		DerivedCount: result.DerivedCount,
		RenamedCount: result.RenamedCount,
	}
}
