package main

import (
	"context"

	"google.golang.org/protobuf/proto"

	memory "github.com/memory-service/memory-service/clients/go"
	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

var fileAdapters = map[string]adapter{
	"FileService/ReadFile":          readFile,
	"FileService/WriteFile":         writeFile,
	"FileService/EditFile":          editFile,
	"FileService/RenameFile":        renameFile,
	"FileService/DeleteFile":        deleteFile,
	"FileService/ListFiles":         listFiles,
	"FileService/SearchFiles":       searchFiles,
	"FileService/ListFileVersions":  listFileVersions,
	"FileService/RedactFileVersion": redactFileVersion,
}

// fileWriteOptions reads the options of a write of a file.
func fileWriteOptions(in *fields) []memory.WriteOption {
	options := writeOptions(in)
	known := in.message.Descriptor().Fields()
	if known.ByName("expected_sha256") != nil && in.has("expected_sha256") {
		options = append(options, memory.WithExpectedSHA256(in.text("expected_sha256")))
	}
	if known.ByName("recursive") != nil && in.flag("recursive") {
		options = append(options, memory.WithRecursive())
	}
	return options
}

func readFile(client *memory.Client, in *fields) call {
	client, path := scoped(client, in), in.text("path")
	options := &memory.ReadFileOptions{
		StartLine:     in.number("start_line"),
		EndLine:       in.number("end_line"),
		Version:       in.integer("version"),
		MaxCharacters: in.number("max_characters"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		read, err := client.ReadFile(ctx, path, options)
		if err != nil {
			return nil, err
		}
		return &memoryv1.ReadFileResponse{
			Content:    read.Content,
			Version:    read.Version,
			Sha256:     read.SHA256,
			LineCount:  int32(read.LineCount),
			SizeBytes:  read.SizeBytes,
			StartLine:  int32(read.StartLine),
			EndLine:    int32(read.EndLine),
			Truncated:  read.Truncated,
			CreateTime: timeOf(read.CreateTime),
			UpdateTime: timeOf(read.UpdateTime),
			Revision:   read.Revision,
			Provenance: provenanceOf(read.Provenance),
		}, nil
	}
}

func writeFile(client *memory.Client, in *fields) call {
	client, path, content, write := scoped(client, in), in.text("path"), in.text("content"), fileWriteOptions(in)
	return func(ctx context.Context) (proto.Message, error) {
		written, err := client.WriteFile(ctx, path, content, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.WriteFileResponse{
			Version:   written.Version,
			Sha256:    written.SHA256,
			LineCount: int32(written.LineCount),
			SizeBytes: written.SizeBytes,
			Created:   written.Created,
			Revision:  written.Revision,
			Degraded:  degradedOf(written.Degraded),
		}, nil
	}
}

// fileEdit reads the edit of a file. Nil: there is none.
func (f *fields) fileEdit() memory.FileEdit {
	switch {
	case f.has("replace"):
		edit := f.child("replace")
		return &memory.ReplaceText{OldText: edit.text("old_text"), NewText: edit.text("new_text")}
	case f.has("insert"):
		edit := f.child("insert")
		return &memory.InsertText{AfterLine: edit.number("after_line"), Text: edit.text("text")}
	case f.has("append"):
		return &memory.AppendText{Text: f.child("append").text("text")}
	}
	return nil
}

func editFile(client *memory.Client, in *fields) call {
	client, path, edit, write := scoped(client, in), in.text("path"), in.fileEdit(), fileWriteOptions(in)
	return func(ctx context.Context) (proto.Message, error) {
		written, err := client.EditFile(ctx, path, edit, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.EditFileResponse{
			Version:   written.Version,
			Sha256:    written.SHA256,
			LineCount: int32(written.LineCount),
			SizeBytes: written.SizeBytes,
			StartLine: int32(written.StartLine),
			Revision:  written.Revision,
			Degraded:  degradedOf(written.Degraded),
		}, nil
	}
}

func renameFile(client *memory.Client, in *fields) call {
	client, path, newPath, write := scoped(client, in), in.text("path"), in.text("new_path"), fileWriteOptions(in)
	return func(ctx context.Context) (proto.Message, error) {
		renamed, err := client.RenameFile(ctx, path, newPath, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.RenameFileResponse{
			RenamedCount: renamed.RenamedCount, Version: renamed.Version, Revision: renamed.Revision,
		}, nil
	}
}

func deleteFile(client *memory.Client, in *fields) call {
	client, path, write := scoped(client, in), in.text("path"), fileWriteOptions(in)
	return func(ctx context.Context) (proto.Message, error) {
		deleted, err := client.DeleteFile(ctx, path, write...)
		if err != nil {
			return nil, err
		}
		return &memoryv1.DeleteFileResponse{DeletedCount: deleted.DeletedCount, Revision: deleted.Revision}, nil
	}
}

func listFiles(client *memory.Client, in *fields) call {
	client = scoped(client, in)
	options := &memory.ListFilesOptions{
		Path: in.text("path"), Depth: in.number("depth"), PageSize: in.number("page_size"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		entries, err := collected(client.ListFiles(ctx, options), func(entry *memory.FileEntry) *memoryv1.FileEntry {
			return &memoryv1.FileEntry{
				Path:       entry.Path,
				IsFolder:   entry.IsFolder,
				SizeBytes:  entry.SizeBytes,
				FileCount:  entry.FileCount,
				Version:    entry.Version,
				CreateTime: timeOf(entry.CreateTime),
				UpdateTime: timeOf(entry.UpdateTime),
			}
		})
		return &memoryv1.ListFilesResponse{Entries: entries}, err
	}
}

func searchFiles(client *memory.Client, in *fields) call {
	client, query := scoped(client, in), in.text("query")
	options := &memory.SearchFilesOptions{
		Path: in.text("path"), Limit: in.optionalNumber("limit"), MaxCharacters: in.number("max_characters"),
	}
	return func(ctx context.Context) (proto.Message, error) {
		found, err := client.SearchFiles(ctx, query, options)
		if err != nil {
			return nil, err
		}
		return &memoryv1.SearchFilesResponse{
			Results: each(found.Results, func(result memory.FileResult) *memoryv1.FileSearchResult {
				return &memoryv1.FileSearchResult{
					Path:      result.Path,
					StartLine: int32(result.StartLine),
					EndLine:   int32(result.EndLine),
					Text:      result.Text,
					Score:     result.Score,
					Version:   result.Version,
				}
			}),
			Degraded: degradedOf(found.Degraded),
			Revision: found.Revision,
		}, nil
	}
}

func listFileVersions(client *memory.Client, in *fields) call {
	client, path, option := scoped(client, in), in.text("path"), memory.WithEntriesPerPage(in.number("page_size"))
	return func(ctx context.Context) (proto.Message, error) {
		versions, err := collected(client.ListFileVersions(ctx, path, option), func(version *memory.FileVersion) *memoryv1.FileVersion {
			return &memoryv1.FileVersion{
				Version:      version.Version,
				Kind:         enumOf[memoryv1.VersionKind](version.Kind),
				Time:         timeOf(version.Time),
				Writer:       version.Writer,
				CredentialId: version.CredentialID,
				Path:         version.Path,
				SizeBytes:    version.SizeBytes,
			}
		})
		return &memoryv1.ListFileVersionsResponse{Versions: versions}, err
	}
}

func redactFileVersion(client *memory.Client, in *fields) call {
	client, path, version := scoped(client, in), in.text("path"), in.integer("version")
	return func(ctx context.Context) (proto.Message, error) {
		at, err := client.RedactFileVersion(ctx, path, version)
		return &memoryv1.RedactFileVersionResponse{Revision: at}, err
	}
}
