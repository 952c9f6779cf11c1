// The client's methods for files.

import { EDITS } from "./argument-shapes.js";
import { Bound } from "./bound.js";
import type {
  CreatedFile,
  DeletedFiles,
  EditedFile,
  FileContent,
  FileEntry,
  FileResult,
  FileVersion,
  RenamedFiles,
} from "./files-model.js";
import { contentTo, fileEntryTo, fileResultTo, fileVersionTo, writtenTo } from "./files-model.js";
import type { Found } from "./found.js";
import { foundOf } from "./found.js";
import type { SearchFilesResponse } from "./gen/memory_service/v1/file_pb.js";
import { FileService } from "./gen/memory_service/v1/file_pb.js";
import type { CallOptions, WriteOptions } from "./options.js";
import { given, requestIdOf, withToken } from "./requests.js";
import { requireShape, shapeOf } from "./shapes.js";
import { int32From, int64From } from "./values.js";
import type { ListVersionsOptions } from "./versions.js";

const method = FileService.method;

/** Replaces a text that occurs exactly once in a file. */
export interface ReplaceText {
  readonly type: "replace";
  /** The text to replace, which may have several lines. */
  readonly oldText: string;
  /** The new text. Empty: the old text is removed. */
  readonly newText: string;
}

/** Inserts a text as separate lines: missing line breaks before and after it are added. */
export interface InsertText {
  readonly type: "insert";
  /** Insert after this line. 0: before the first. */
  readonly afterLine: number;
  /** The text to insert. */
  readonly text: string;
}

/** Adds a text to the end of a file. It continues the last line, unless that ends with a line break. */
export interface AppendText {
  readonly type: "append";
  /** The text to add. */
  readonly text: string;
}

/** An edit of a part of a file. */
export type FileEdit = ReplaceText | InsertText | AppendText;

/** Which part of a file is read. */
export interface ReadFileOptions extends CallOptions {
  /** The first line, from 1. Undefined or 0: the first of the file. */
  readonly startLine?: number | undefined;
  /** The last line, inclusive. Undefined, 0 or -1: the last of the file. */
  readonly endLine?: number | undefined;
  /** Read this version. Undefined or 0: the current one. */
  readonly version?: number | undefined;
  /** Maximum number of code points; the content ends with the last whole line that fits. Undefined: no limit. */
  readonly maxCharacters?: number | undefined;
}

/** How a file is written or edited. */
export interface WriteFileOptions extends WriteOptions {
  /** Write only if this is the file's version; 0: only if there is no such file. */
  readonly expectedVersion?: number | undefined;
  /** Write only if the current content has this SHA-256, in hexadecimal. */
  readonly expectedSha256?: string | undefined;
}

/** How a file is renamed. */
export interface RenameFileOptions extends WriteOptions {
  /** Rename only if this is the file's version. Not for a folder. */
  readonly expectedVersion?: number | undefined;
}

/** How a file is deleted. */
export interface DeleteFileOptions extends RenameFileOptions {
  /** Delete a folder with everything below it. */
  readonly recursive?: boolean | undefined;
}

/** Which files are listed. */
export interface ListFilesOptions extends CallOptions {
  /** The folder to list, or a file. Undefined or empty: all files. */
  readonly path?: string | undefined;
  /** How many levels to list; deeper files count in their folder. Undefined or 0: all. */
  readonly depth?: number | undefined;
  /** Number to fetch at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** How files are searched. */
export interface SearchFilesOptions extends CallOptions {
  /** Only this file, or the files below this folder. Undefined or empty: all. */
  readonly path?: string | undefined;
  /** Maximum number of results, at most 100. Undefined: 5. */
  readonly limit?: number | undefined;
  /** Maximum number of code points of all texts together. Undefined: no limit. */
  readonly maxCharacters?: number | undefined;
}

/** Methods for the files of the client's namespace: text files below folders, for a model's notes. */
export abstract class FileMethods extends Bound {
  /**
   * Returns a file, or a range of its lines.
   *
   * @throws NotFoundError - there is no such file, or the version is no longer kept
   */
  async readFile(path: string, options: ReadFileOptions = {}): Promise<FileContent> {
    const request = {
      namespace: this.boundTo,
      path,
      startLine: int32From(options.startLine ?? 0, "startLine"),
      endLine: int32From(options.endLine ?? 0, "endLine"),
      version: int64From(options.version ?? 0, "version"),
      maxCharacters: int32From(options.maxCharacters ?? 0, "maxCharacters"),
    };
    return contentTo(await this.transport.unary(method.readFile, request, options));
  }

  /**
   * Creates a file, or replaces its content. Its folders need not exist.
   *
   * @param content - the content, at most 1 MiB
   * @throws AlreadyExistsError - the path is a folder, or one of its folders is a file
   * @throws ConflictError - the file is not as expected; `metadata.current_version` has its version
   */
  async writeFile(path: string, content: string, options: WriteFileOptions = {}): Promise<CreatedFile> {
    const request = { ...writeOf(this.boundTo, path, options), content };
    const response = await this.transport.unary(method.writeFile, request, options);
    return { ...writtenTo(response), created: response.created };
  }

  /**
   * Changes a part of a file: the current version, unless another one is expected.
   *
   * @throws NotFoundError - there is no such file
   * @throws ConflictError - the file is not as expected; `metadata.current_version` has its version
   * @throws FailedPreconditionError - the text to replace does not occur exactly once;
   *   `metadata.occurrences` says how often
   */
  async editFile(path: string, edit: FileEdit, options: WriteFileOptions = {}): Promise<EditedFile> {
    const request = { ...writeOf(this.boundTo, path, options), edit: editFrom(edit) };
    const response = await this.transport.unary(method.editFile, request, options);
    return { ...writtenTo(response), startLine: response.startLine };
  }

  /**
   * Moves a file, or a folder with everything below it; versions go along.
   *
   * @throws NotFoundError - there is no such file or folder
   * @throws AlreadyExistsError - there is a file or a folder at the new path
   * @throws ConflictError - the file's version is not `expectedVersion`
   */
  async renameFile(path: string, newPath: string, options: RenameFileOptions = {}): Promise<RenamedFiles> {
    const request = {
      namespace: this.boundTo,
      path,
      newPath,
      expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
      requestId: requestIdOf(options),
    };
    const { renamedCount, version, revision } = await this.transport.unary(method.renameFile, request, options);
    return { renamedCount: Number(renamedCount), version: Number(version), revision: Number(revision) };
  }

  /**
   * Removes a file, or with `recursive` a folder with everything below it.
   *
   * @throws NotFoundError - there is no such file or folder
   * @throws FailedPreconditionError - it is a folder, and `recursive` is not set
   * @throws ConflictError - the file's version is not `expectedVersion`
   */
  async deleteFile(path: string, options: DeleteFileOptions = {}): Promise<DeletedFiles> {
    const request = {
      namespace: this.boundTo,
      path,
      recursive: options.recursive ?? false,
      expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
      requestId: requestIdOf(options),
    };
    const response = await this.transport.unary(method.deleteFile, request, options);
    return { deletedCount: Number(response.deletedCount), revision: Number(response.revision) };
  }

  /** Yields the files and folders below a folder, by path. */
  async *listFiles(options: ListFilesOptions = {}): AsyncGenerator<FileEntry, void, undefined> {
    const request = {
      namespace: this.boundTo,
      path: options.path ?? "",
      depth: int32From(options.depth ?? 0, "depth"),
      pageSize: int32From(options.pageSize ?? 0, "pageSize"),
    };
    for await (const page of this.transport.pages(method.listFiles, withToken(request), options)) {
      yield* page.entries.map(fileEntryTo);
    }
  }

  /**
   * Returns the pieces of files that match a text best, best first, with their lines.
   *
   * @param query - a text to find pieces for, at most 64 KiB
   */
  async searchFiles(query: string, options: SearchFilesOptions = {}): Promise<Found<FileResult>> {
    const request = {
      namespace: this.boundTo,
      query,
      path: options.path ?? "",
      limit: given(options.limit, int32From, "limit"),
      maxCharacters: int32From(options.maxCharacters ?? 0, "maxCharacters"),
    };
    const response = await this.transport.unary(method.searchFiles, request, options);
    return foundOf(onePage(response), ({ results }) => results.map(fileResultTo));
  }

  /**
   * Yields the versions of a file, newest first, also those before a rename.
   *
   * @throws NotFoundError - there is no such file
   */
  async *listFileVersions(
    path: string,
    options: ListVersionsOptions = {},
  ): AsyncGenerator<FileVersion, void, undefined> {
    const pageSize = int32From(options.pageSize ?? 0, "pageSize");
    const request = withToken({ namespace: this.boundTo, path, pageSize });
    for await (const page of this.transport.pages(method.listFileVersions, request, options)) {
      yield* page.versions.map(fileVersionTo);
    }
  }

  /**
   * Removes the content of a replaced version of a file.
   *
   * @returns the namespace's revision
   * @throws NotFoundError - there is no such file or version
   * @throws FailedPreconditionError - it is the current version
   */
  async redactFileVersion(path: string, version: number, options: CallOptions = {}): Promise<number> {
    const request = { namespace: this.boundTo, path, version: int64From(version, "version") };
    const response = await this.transport.unary(method.redactFileVersion, request, options);
    return Number(response.revision);
  }
}

function writeOf(namespace: string, path: string, options: WriteFileOptions) {
  return {
    namespace,
    path,
    expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
    expectedSha256: options.expectedSha256 ?? "",
    requestId: requestIdOf(options),
  };
}

async function* onePage(response: SearchFilesResponse): AsyncGenerator<SearchFilesResponse> {
  yield response;
}

/** @internal */
export function editFrom(edit: FileEdit) {
  requireShape(edit, shapeOf(edit, EDITS, "edit"), "edit");
  switch (edit.type) {
    case "replace":
      return { case: "replace" as const, value: { oldText: edit.oldText, newText: edit.newText } };
    case "insert":
      return {
        case: "insert" as const,
        value: { afterLine: int32From(edit.afterLine, "edit.afterLine"), text: edit.text },
      };
    case "append":
      return { case: "append" as const, value: { text: edit.text } };
  }
}
