package memory

import (
	"context"
	"fmt"
	"iter"

	"github.com/memory-service/memory-service/clients/go/internal/memoryv1"
)

// ReadFile returns a file, or a range of its lines. Nil options are the defaults. It returns
// [ErrNotFound] if there is no such file, or if the version is no longer kept.
func (c *Client) ReadFile(ctx context.Context, path string, options *ReadFileOptions) (*FileContent, error) {
	wanted := orDefaults(options)
	startLine, err := int32From(wanted.StartLine, "start_line")
	if err != nil {
		return nil, err
	}
	endLine, err := int32From(wanted.EndLine, "end_line")
	if err != nil {
		return nil, err
	}
	maxCharacters, err := int32From(wanted.MaxCharacters, "max_characters")
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.files.ReadFile, &memoryv1.ReadFileRequest{
		Namespace:     c.namespace,
		Path:          path,
		StartLine:     startLine,
		EndLine:       endLine,
		Version:       wanted.Version,
		MaxCharacters: maxCharacters,
	})
	if err != nil {
		return nil, err
	}
	return &FileContent{
		Content:    response.GetContent(),
		Version:    response.GetVersion(),
		SHA256:     response.GetSha256(),
		LineCount:  int(response.GetLineCount()),
		SizeBytes:  response.GetSizeBytes(),
		StartLine:  int(response.GetStartLine()),
		EndLine:    int(response.GetEndLine()),
		Truncated:  response.GetTruncated(),
		CreateTime: timeTo(response.GetCreateTime()),
		UpdateTime: timeTo(response.GetUpdateTime()),
		Revision:   response.GetRevision(),
		Provenance: provenanceTo(response.GetProvenance()),
	}, nil
}

// WriteFile creates a file, or replaces its content, at most 1 MiB. Its folders need not exist. It takes
// [WithExpectedVersion] and [WithExpectedSHA256], with which it returns [ErrConflict] if the file is not
// as expected, and [WithRequestID]. It returns [ErrAlreadyExists] if the path is a folder, or one of its
// folders a file.
func (c *Client) WriteFile(
	ctx context.Context, path, content string, write ...WriteOption,
) (*WrittenFile, error) {
	settings, err := writeSettingsFrom(write, expectedVersionOption, expectedSHA256Option)
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.files.WriteFile, &memoryv1.WriteFileRequest{
		Namespace:       c.namespace,
		Path:            path,
		Content:         content,
		ExpectedVersion: settings.expectedVersion,
		ExpectedSha256:  settings.expectedSHA256,
		RequestId:       settings.requestID,
	})
	if err != nil {
		return nil, err
	}
	return &WrittenFile{
		Version:   response.GetVersion(),
		SHA256:    response.GetSha256(),
		LineCount: int(response.GetLineCount()),
		SizeBytes: response.GetSizeBytes(),
		Created:   response.GetCreated(),
		Revision:  response.GetRevision(),
		Degraded:  degradedTo(response.GetDegraded()),
	}, nil
}

// EditFile changes a part of a file: its current version, unless another one is expected. It takes
// [WithExpectedVersion] and [WithExpectedSHA256], with which it returns [ErrConflict] if the file is not
// as expected, and [WithRequestID].
//
// It returns [ErrNotFound] if there is no such file, and an error with [ReasonOccurrenceMismatch] if the
// text to replace does not occur exactly once.
func (c *Client) EditFile(
	ctx context.Context, path string, edit FileEdit, write ...WriteOption,
) (*WrittenFile, error) {
	settings, err := writeSettingsFrom(write, expectedVersionOption, expectedSHA256Option)
	if err != nil {
		return nil, err
	}
	request := &memoryv1.EditFileRequest{
		Namespace:       c.namespace,
		Path:            path,
		ExpectedVersion: settings.expectedVersion,
		ExpectedSha256:  settings.expectedSHA256,
		RequestId:       settings.requestID,
	}
	switch edit := edit.(type) {
	case *ReplaceText:
		request.Edit = &memoryv1.EditFileRequest_Replace{Replace: replaceTextFrom(edit)}
	case *InsertText:
		insert, err := insertTextFrom(edit, "insert")
		if err != nil {
			return nil, err
		}
		request.Edit = &memoryv1.EditFileRequest_Insert{Insert: insert}
	case *AppendText:
		request.Edit = &memoryv1.EditFileRequest_Append{Append: appendTextFrom(edit)}
	default:
		return nil, invalidArgument("edit", fmt.Sprintf("edit: %T is no edit of a file", edit))
	}
	response, err := invoke(ctx, c, c.files.EditFile, request)
	if err != nil {
		return nil, err
	}
	return &WrittenFile{
		Version:   response.GetVersion(),
		SHA256:    response.GetSha256(),
		LineCount: int(response.GetLineCount()),
		SizeBytes: response.GetSizeBytes(),
		StartLine: int(response.GetStartLine()),
		Revision:  response.GetRevision(),
		Degraded:  degradedTo(response.GetDegraded()),
	}, nil
}

func replaceTextFrom(edit *ReplaceText) *memoryv1.ReplaceText {
	return &memoryv1.ReplaceText{OldText: edit.OldText, NewText: edit.NewText}
}

func insertTextFrom(edit *InsertText, where string) (*memoryv1.InsertText, error) {
	afterLine, err := int32From(edit.AfterLine, where+".after_line")
	if err != nil {
		return nil, err
	}
	return &memoryv1.InsertText{AfterLine: afterLine, Text: edit.Text}, nil
}

func appendTextFrom(edit *AppendText) *memoryv1.AppendText {
	return &memoryv1.AppendText{Text: edit.Text}
}

// RenameFile moves a file, or a folder with everything below it; versions go along. It takes
// [WithExpectedVersion], with which it returns [ErrConflict] if the file's version differs, and
// [WithRequestID]. It returns [ErrNotFound] if there is no such file or folder, and [ErrAlreadyExists]
// if there is one at the new path.
func (c *Client) RenameFile(
	ctx context.Context, path, newPath string, write ...WriteOption,
) (*RenamedFiles, error) {
	settings, err := writeSettingsFrom(write, expectedVersionOption)
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.files.RenameFile, &memoryv1.RenameFileRequest{
		Namespace:       c.namespace,
		Path:            path,
		NewPath:         newPath,
		ExpectedVersion: settings.expectedVersion,
		RequestId:       settings.requestID,
	})
	if err != nil {
		return nil, err
	}
	return &RenamedFiles{
		RenamedCount: response.GetRenamedCount(), Version: response.GetVersion(), Revision: response.GetRevision(),
	}, nil
}

// DeleteFile removes a file, or with [WithRecursive] a folder with everything below it. It also takes
// [WithExpectedVersion], with which it returns [ErrConflict] if the file's version differs, and
// [WithRequestID]. It returns [ErrNotFound] if there is no such file or folder, and an error with
// [ReasonFolderNotEmpty] for a folder without [WithRecursive].
func (c *Client) DeleteFile(ctx context.Context, path string, write ...WriteOption) (*DeletedFiles, error) {
	settings, err := writeSettingsFrom(write, expectedVersionOption, recursiveOption)
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.files.DeleteFile, &memoryv1.DeleteFileRequest{
		Namespace:       c.namespace,
		Path:            path,
		Recursive:       settings.recursive,
		ExpectedVersion: settings.expectedVersion,
		RequestId:       settings.requestID,
	})
	if err != nil {
		return nil, err
	}
	return &DeletedFiles{DeletedCount: response.GetDeletedCount(), Revision: response.GetRevision()}, nil
}

// ListFiles yields the files and folders below a folder, by path; pages are fetched as needed. Nil
// options are the defaults.
func (c *Client) ListFiles(ctx context.Context, options *ListFilesOptions) iter.Seq2[*FileEntry, error] {
	wanted := orDefaults(options)
	return paged(func(token string) ([]*FileEntry, string, error) {
		depth, err := int32From(wanted.Depth, "depth")
		if err != nil {
			return nil, "", err
		}
		pageSize, err := int32From(wanted.PageSize, "page_size")
		if err != nil {
			return nil, "", err
		}
		response, err := invoke(ctx, c, c.files.ListFiles, &memoryv1.ListFilesRequest{
			Namespace: c.namespace, Path: wanted.Path, Depth: depth, PageSize: pageSize, PageToken: token,
		})
		return each(response.GetEntries(), fileEntryTo), response.GetNextPageToken(), err
	})
}

func fileEntryTo(entry *memoryv1.FileEntry) *FileEntry {
	return &FileEntry{
		Path:       entry.GetPath(),
		IsFolder:   entry.GetIsFolder(),
		SizeBytes:  entry.GetSizeBytes(),
		FileCount:  entry.GetFileCount(),
		Version:    entry.GetVersion(),
		CreateTime: timeTo(entry.GetCreateTime()),
		UpdateTime: timeTo(entry.GetUpdateTime()),
	}
}

// SearchFiles returns the pieces of files that match a text best, best first, with their lines; 5 by
// default. Nil options are the defaults.
func (c *Client) SearchFiles(
	ctx context.Context, query string, options *SearchFilesOptions,
) (*FileResults, error) {
	wanted := orDefaults(options)
	limit, err := optionalInt32From(wanted.Limit, "limit")
	if err != nil {
		return nil, err
	}
	maxCharacters, err := int32From(wanted.MaxCharacters, "max_characters")
	if err != nil {
		return nil, err
	}
	response, err := invoke(ctx, c, c.files.SearchFiles, &memoryv1.SearchFilesRequest{
		Namespace: c.namespace, Query: query, Path: wanted.Path, Limit: limit, MaxCharacters: maxCharacters,
	})
	if err != nil {
		return nil, err
	}
	return &FileResults{
		Results:  each(response.GetResults(), fileResultTo),
		Degraded: degradedTo(response.GetDegraded()),
		Revision: response.GetRevision(),
	}, nil
}

func fileResultTo(result *memoryv1.FileSearchResult) FileResult {
	return FileResult{
		Path:      result.GetPath(),
		StartLine: int(result.GetStartLine()),
		EndLine:   int(result.GetEndLine()),
		Text:      result.GetText(),
		Score:     result.GetScore(),
		Version:   result.GetVersion(),
	}
}

// ListFileVersions yields the versions of a file, newest first, also those before a rename; pages are
// fetched as needed. It yields [ErrNotFound] if there is no such file. It takes [WithEntriesPerPage].
func (c *Client) ListFileVersions(
	ctx context.Context, path string, options ...ListOption,
) iter.Seq2[*FileVersion, error] {
	return paged(func(token string) ([]*FileVersion, string, error) {
		pageSize, err := versionsPerPage(options)
		if err != nil {
			return nil, "", err
		}
		response, err := invoke(ctx, c, c.files.ListFileVersions, &memoryv1.ListFileVersionsRequest{
			Namespace: c.namespace, Path: path, PageSize: pageSize, PageToken: token,
		})
		return each(response.GetVersions(), fileVersionTo), response.GetNextPageToken(), err
	})
}

func fileVersionTo(version *memoryv1.FileVersion) *FileVersion {
	return &FileVersion{
		Version:      version.GetVersion(),
		Kind:         enumTo[VersionKind](version.GetKind(), "VERSION_KIND_"),
		Time:         timeTo(version.GetTime()),
		Writer:       version.GetWriter(),
		CredentialID: version.GetCredentialId(),
		Path:         version.GetPath(),
		SizeBytes:    version.GetSizeBytes(),
	}
}

// RedactFileVersion removes the content of a replaced version of a file and returns the namespace's
// revision. It returns [ErrNotFound] if there is no such file or version, and [ErrFailedPrecondition] if it
// is the current one.
func (c *Client) RedactFileVersion(ctx context.Context, path string, version int64) (int64, error) {
	response, err := invoke(ctx, c, c.files.RedactFileVersion, &memoryv1.RedactFileVersionRequest{
		Namespace: c.namespace, Path: path, Version: version,
	})
	return response.GetRevision(), err
}
