// The operations of a batch and their results, and conversions to their protobuf messages and back.

import type { MessageInitShape } from "@bufbuild/protobuf";

import { OPERATIONS } from "./argument-shapes.js";
import { changesFrom, itemFrom } from "./convert.js";
import type { Degradation } from "./degradation.js";
import { degradedTo } from "./degradation.js";
import type {
  BatchWriteResponse,
  WriteOperationSchema,
  WriteResult as ProtoResult,
} from "./gen/memory_service/v1/memory_pb.js";
import type { OnDuplicate } from "./importing.js";
import { onDuplicateFrom } from "./importing.js";
import { within } from "./invalid.js";
import type { ItemKind, NewItem } from "./items.js";
import type { JsonValue } from "./json.js";
import type { ItemChanges } from "./memory-options.js";
import type { Content } from "./messages.js";
import type { FileEdit } from "./files.js";
import { editFrom } from "./files.js";
import { given } from "./requests.js";
import { conditionFrom } from "./retrieval.js";
import { requireShape, shapeOf } from "./shapes.js";
import type { ValueOptions } from "./state-entries.js";
import { savedFrom } from "./state-entries.js";
import type { Time, TimeInput } from "./times.js";
import { int64From, optionalTimeTo } from "./values.js";

/** Adds an item, as `add` does. */
export interface AddOperation {
  readonly type: "add";
  /** The item; a content or a string stands for an item with this content. */
  readonly item: NewItem | Content | string;
  /** What to do if its id exists already. Undefined: "fail". */
  readonly onDuplicate?: OnDuplicate | undefined;
}

/** Changes the given fields of an item, as `update` does. */
export interface UpdateOperation {
  readonly type: "update";
  readonly id: string;
  readonly changes: ItemChanges;
  /** Write only if this is the item's revision. Undefined: always. */
  readonly expectedRevision?: number | undefined;
}

/** Deletes an item, as `delete` does. */
export interface DeleteOperation {
  readonly type: "delete";
  readonly id: string;
  /** Delete only if this is the item's revision. Undefined: always. */
  readonly expectedRevision?: number | undefined;
  /** Do nothing if there is no such item. Otherwise the batch is rejected. */
  readonly allowMissing?: boolean | undefined;
  /** Keep what was made only from it. Otherwise it is deleted too, except items that another operation names. */
  readonly keepDerived?: boolean | undefined;
}

/** Which items are deleted: those that meet all the conditions, of which at least one is required. */
export interface DeleteCondition {
  /** Only items of this conversation. */
  readonly sessionId?: string | undefined;
  /** Only items that have all these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /**
   * Only items of these kinds, which must be of a conversation: plain items, messages, responses or reflections.
   * Undefined or empty: all of those.
   */
  readonly kinds?: readonly ItemKind[] | undefined;
  /** Only items for which this expression holds, as in `ItemFilter`. */
  readonly filter?: string | undefined;
  /** Only items whose createTime is at or after it. */
  readonly startTime?: TimeInput | undefined;
  /** Only items whose createTime is before it. */
  readonly endTime?: TimeInput | undefined;
}

/**
 * Deletes the items that meet the conditions, as `deleteWhere` does, except those that another operation of the
 * batch names. All operations of this type together may match up to 10,000 items.
 */
export interface DeleteWhereOperation extends DeleteCondition {
  readonly type: "delete_where";
  /** Keep what was made only from these items. Otherwise it is deleted too, except items that another names. */
  readonly keepDerived?: boolean | undefined;
}

/** Saves a value under a key, as `saveState` does. */
export interface SaveStateOperation extends ValueOptions {
  readonly type: "save_state";
  readonly key: string;
  readonly value: JsonValue;
}

/** Removes a key, as `deleteState` does. */
export interface DeleteStateOperation {
  readonly type: "delete_state";
  readonly key: string;
  /** Remove it only if this is the key's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
  /** Do nothing if there is no such key. Otherwise the batch is rejected. */
  readonly allowMissing?: boolean | undefined;
}

/**
 * Writes a file, as `writeFile` does. Of the operations on files, none may name the path of another, nor a folder
 * of it.
 */
export interface WriteFileOperation {
  readonly type: "write_file";
  readonly path: string;
  readonly content: string;
  /** Write only if this is the file's version; 0: only if there is no such file. Undefined: always. */
  readonly expectedVersion?: number | undefined;
  /** Write only if the content has this SHA-256, in hexadecimal. Undefined: always. */
  readonly expectedSha256?: string | undefined;
}

/** Edits a file, as `editFile` does. */
export interface EditFileOperation {
  readonly type: "edit_file";
  readonly path: string;
  readonly edit: FileEdit;
  /** Edit only if this is the file's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
  /** Edit only if the content has this SHA-256, in hexadecimal. Undefined: always. */
  readonly expectedSha256?: string | undefined;
}

/** Moves a file or a folder, as `renameFile` does. */
export interface RenameFileOperation {
  readonly type: "rename_file";
  readonly path: string;
  readonly newPath: string;
  /** Rename only if this is the file's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
}

/** Removes a file or a folder, as `deleteFile` does. */
export interface DeleteFileOperation {
  readonly type: "delete_file";
  readonly path: string;
  /** Delete a folder with everything below it. */
  readonly recursive?: boolean | undefined;
  /** Delete only if this is the file's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
}

/** One operation of a batch; `type` distinguishes the variants. */
export type WriteOperation =
  | AddOperation
  | UpdateOperation
  | DeleteOperation
  | DeleteWhereOperation
  | SaveStateOperation
  | DeleteStateOperation
  | WriteFileOperation
  | EditFileOperation
  | RenameFileOperation
  | DeleteFileOperation;

/** The result of one operation. */
export interface WriteResult {
  /** Id of the item that was added or changed. Empty: none was. */
  readonly id: string;
  /** Revision at which the item or the state was written. 0: nothing was written. */
  readonly revision: number;
  /** Version of the state that was saved, or of the file that was written or renamed. 0: none was. */
  readonly version: number;
  /** The createTime of the item or the state that was written. */
  readonly createTime?: Time | undefined;
  /** When it was written. */
  readonly updateTime?: Time | undefined;
  /** When it expires. Undefined: never, or nothing was written. */
  readonly expireTime?: Time | undefined;
  /** Whether an item was skipped because its id exists. */
  readonly skipped: boolean;
  /** Number of items, states or files that were deleted, without derived ones. */
  readonly deletedCount: number;
  /** Number of other items that were deleted because they were made only from those. */
  readonly derivedCount: number;
  /** Number of files that were renamed. */
  readonly renamedCount: number;
}

/** What a batch wrote. */
export interface BatchWritten {
  /** One for each operation, in the same order. */
  readonly results: readonly WriteResult[];
  /** Revision of the namespace after the batch. */
  readonly revision: number;
  /** What the server could not do, such as embedding the texts. */
  readonly degraded: readonly Degradation[];
}

/**
 * Converts an operation.
 *
 * @throws InvalidArgumentError - there is no such operation, or it has an unknown or invalid property
 * @internal
 */
export function operationFrom(operation: WriteOperation): MessageInitShape<typeof WriteOperationSchema> {
  requireShape(operation, shapeOf(operation, OPERATIONS, ""), "");
  return { operation: variantFrom(operation) };
}

function variantFrom(operation: WriteOperation): MessageInitShape<typeof WriteOperationSchema>["operation"] & object {
  switch (operation.type) {
    case "add": {
      const onDuplicate = onDuplicateFrom(operation.onDuplicate);
      return { case: "add", value: { item: within("item", () => itemFrom(operation.item)), onDuplicate } };
    }
    case "update": {
      const expectedRevision = given(operation.expectedRevision, int64From, "expectedRevision");
      return { case: "update", value: { ...changesFrom(operation.id, operation.changes), expectedRevision } };
    }
    case "delete": {
      const { id, allowMissing = false, keepDerived = false } = operation;
      const expectedRevision = given(operation.expectedRevision, int64From, "expectedRevision");
      return { case: "delete", value: { id, expectedRevision, allowMissing, keepDerived } };
    }
    case "delete_where": {
      const { keepDerived = false } = operation;
      return { case: "deleteWhere", value: { ...conditionFrom(operation), keepDerived } };
    }
    case "save_state":
      return { case: "saveState", value: savedFrom(operation.key, operation.value, operation) };
    case "delete_state": {
      const { key, allowMissing = false } = operation;
      const expectedVersion = given(operation.expectedVersion, int64From, "expectedVersion");
      return { case: "deleteState", value: { key, expectedVersion, allowMissing } };
    }
    case "write_file": {
      const { path, content, expectedSha256 = "" } = operation;
      const expectedVersion = given(operation.expectedVersion, int64From, "expectedVersion");
      return { case: "writeFile", value: { path, content, expectedVersion, expectedSha256 } };
    }
    case "edit_file": {
      const { path, expectedSha256 = "" } = operation;
      const expectedVersion = given(operation.expectedVersion, int64From, "expectedVersion");
      return { case: "editFile", value: { path, edit: editFrom(operation.edit), expectedVersion, expectedSha256 } };
    }
    case "rename_file": {
      const { path, newPath } = operation;
      const expectedVersion = given(operation.expectedVersion, int64From, "expectedVersion");
      return { case: "renameFile", value: { path, newPath, expectedVersion } };
    }
    case "delete_file": {
      const { path, recursive = false } = operation;
      const expectedVersion = given(operation.expectedVersion, int64From, "expectedVersion");
      return { case: "deleteFile", value: { path, recursive, expectedVersion } };
    }
  }
}

/** @internal */
export function batchWrittenTo(response: BatchWriteResponse): BatchWritten {
  const { results, revision, degraded } = response;
  return { results: results.map(resultTo), revision: Number(revision), degraded: degradedTo(degraded) };
}

function resultTo(result: ProtoResult): WriteResult {
  return {
    id: result.id,
    revision: Number(result.revision),
    version: Number(result.version),
    createTime: optionalTimeTo(result.createTime),
    updateTime: optionalTimeTo(result.updateTime),
    expireTime: optionalTimeTo(result.expireTime),
    skipped: result.skipped,
    deletedCount: Number(result.deletedCount),
    derivedCount: Number(result.derivedCount),
    renamedCount: Number(result.renamedCount),
  };
}
