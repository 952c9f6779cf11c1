// Files, as plain values.

import type { Degradation } from "./degradation.js";
import { degradedTo } from "./degradation.js";
import type {
  EditFileResponse,
  FileEntry as ProtoEntry,
  FileSearchResult as ProtoResult,
  FileVersion as ProtoVersion,
  ReadFileResponse,
  WriteFileResponse,
} from "./gen/memory_service/v1/file_pb.js";
import { VersionKind as Kinds } from "./gen/memory_service/v1/state_pb.js";
import type { Provenance } from "./items.js";
import { provenanceTo } from "./provenance.js";
import type { Time } from "./times.js";
import { enumTo, optionalTimeTo } from "./values.js";
import type { VersionKind } from "./versions.js";

/** A file, or a range of its lines. */
export interface FileContent {
  /** The lines, with their line breaks, unchanged. */
  readonly content: string;
  /** The version that was read: the revision of the namespace at which it was written. */
  readonly version: number;
  /** SHA-256 of the whole file, in hexadecimal. */
  readonly sha256: string;
  /** Number of lines of the whole file. */
  readonly lineCount: number;
  /** Size of the whole file in bytes of UTF-8. */
  readonly sizeBytes: number;
  /** The first line of the content, from 1. 0: the file is empty. */
  readonly startLine: number;
  /** The last line of the content. 0: the file is empty. */
  readonly endLine: number;
  /** Whether the content ends early because of `maxCharacters`. */
  readonly truncated: boolean;
  /** When the file was created. */
  readonly createTime?: Time | undefined;
  /** When this version was written. */
  readonly updateTime?: Time | undefined;
  /** Revision of the namespace that the answer reflects. */
  readonly revision: number;
  /** Its writer and its trust. Undefined: written by a caller without a name, and therefore trusted. */
  readonly provenance?: Provenance | undefined;
}

/** A file that was written or edited. */
export interface WrittenFile {
  /** The version that was written. 0: it waits for a review. */
  readonly version: number;
  /** SHA-256 of the whole content, in hexadecimal. */
  readonly sha256: string;
  /** Number of lines. */
  readonly lineCount: number;
  /** Size in bytes of UTF-8. */
  readonly sizeBytes: number;
  /** Revision of the namespace after the write. */
  readonly revision: number;
  /** What the server could not do, such as embedding the text. Empty: it did everything. */
  readonly degraded: readonly Degradation[];
}

/** What `writeFile` wrote. */
export interface CreatedFile extends WrittenFile {
  /** Whether the file did not exist before. */
  readonly created: boolean;
}

/** What `editFile` wrote. */
export interface EditedFile extends WrittenFile {
  /** The line in which the change begins, from 1. */
  readonly startLine: number;
}

/** What `renameFile` changed. */
export interface RenamedFiles {
  /** Number of files that have a new path. */
  readonly renamedCount: number;
  /** The new version of a file. 0: it was a folder. */
  readonly version: number;
  /** Revision of the namespace after the write. */
  readonly revision: number;
}

/** What `deleteFile` removed. */
export interface DeletedFiles {
  /** Number of files that were deleted. */
  readonly deletedCount: number;
  /** Revision of the namespace after the deletion. */
  readonly revision: number;
}

/** A file or a folder. */
export interface FileEntry {
  /** The path. */
  readonly path: string;
  /** Whether it is a folder. */
  readonly isFolder: boolean;
  /** Size in bytes of UTF-8; of a folder the sum of all files below it. */
  readonly sizeBytes: number;
  /** Number of files below a folder. 0: it is a file. */
  readonly fileCount: number;
  /** Version of a file. 0: it is a folder. */
  readonly version: number;
  /** When the file, or the first one below the folder, was created. */
  readonly createTime?: Time | undefined;
  /** When the file, or one below the folder, was last written. */
  readonly updateTime?: Time | undefined;
}

/** A piece of a file that was found. */
export interface FileResult {
  /** The path of the file. */
  readonly path: string;
  /** The line in which the text begins, from 1. */
  readonly startLine: number;
  /** The line in which it ends. */
  readonly endLine: number;
  /** The text of the piece, unchanged. */
  readonly text: string;
  /** Higher is better. */
  readonly score: number;
  /** Version of the file. */
  readonly version: number;
}

/** A version of a file. */
export interface FileVersion {
  /** The version: the revision of the namespace at which it was written. */
  readonly version: number;
  /** What became of it. */
  readonly kind: VersionKind;
  /** When it was written. */
  readonly time?: Time | undefined;
  /** Name of the credential that wrote it. Empty: none. */
  readonly writer: string;
  /** Id of that credential. */
  readonly credentialId: string;
  /** The path of the file in this version. Empty: redacted. */
  readonly path: string;
  /** Size in bytes of UTF-8. */
  readonly sizeBytes: number;
}

/** @internal */
export function fileVersionTo(proto: ProtoVersion): FileVersion {
  const { writer, credentialId, path } = proto;
  return {
    version: Number(proto.version),
    kind: enumTo(Kinds, proto.kind),
    time: optionalTimeTo(proto.time),
    ...{ writer, credentialId, path },
    sizeBytes: Number(proto.sizeBytes),
  };
}

/** @internal */
export function contentTo(response: ReadFileResponse): FileContent {
  const { content, sha256, lineCount, startLine, endLine, truncated } = response;
  return {
    ...{ content, sha256, lineCount, startLine, endLine, truncated },
    version: Number(response.version),
    sizeBytes: Number(response.sizeBytes),
    createTime: optionalTimeTo(response.createTime),
    updateTime: optionalTimeTo(response.updateTime),
    revision: Number(response.revision),
    provenance: provenanceTo(response.provenance),
  };
}

/** @internal */
export function writtenTo(response: WriteFileResponse | EditFileResponse): WrittenFile {
  const { sha256, lineCount } = response;
  return {
    version: Number(response.version),
    ...{ sha256, lineCount },
    sizeBytes: Number(response.sizeBytes),
    revision: Number(response.revision),
    degraded: degradedTo(response.degraded),
  };
}

/** @internal */
export function fileEntryTo(entry: ProtoEntry): FileEntry {
  const { path, isFolder } = entry;
  return {
    ...{ path, isFolder },
    sizeBytes: Number(entry.sizeBytes),
    fileCount: Number(entry.fileCount),
    version: Number(entry.version),
    createTime: optionalTimeTo(entry.createTime),
    updateTime: optionalTimeTo(entry.updateTime),
  };
}

/** @internal */
export function fileResultTo({ path, startLine, endLine, text, score, version }: ProtoResult): FileResult {
  return { path, startLine, endLine, text, score, version: Number(version) };
}
