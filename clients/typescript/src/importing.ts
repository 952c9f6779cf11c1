// Records gathered into the batches of an import.

import { create, toBinary } from "@bufbuild/protobuf";

import { importedItemFrom } from "./convert.js";
import type { ImportRequest } from "./gen/memory_service/v1/memory_pb.js";
import { ImportRequestSchema, MemoryItemSchema, OnDuplicate as Choices } from "./gen/memory_service/v1/memory_pb.js";
import { StateEntrySchema } from "./gen/memory_service/v1/state_pb.js";
import { invalid, shown, typeOf, within } from "./invalid.js";
import type { ImportedItem } from "./items.js";
import type { NewStateEntry } from "./state-entries.js";
import { newEntryFrom } from "./state-entries.js";
import { enumFrom } from "./values.js";

const BATCH_RECORDS = 500;
const BATCH_BYTES = 2 * 1024 * 1024;
/** Maximum number of records in a batch that the server takes. */
const RECORDS_MAX = 1000;

/**
 * What to do with an item or a state entry whose id or key exists already: "fail" rejects the call or ends the
 * import, "skip" keeps the stored one, "replace" replaces it.
 */
export type OnDuplicate = "fail" | "skip" | "replace";

/** Records to import: items, and state entries, which have a key. */
export type ImportRecord = ImportedItem | NewStateEntry;

/** How records are gathered into batches. */
export interface Batching {
  /** What to do with a record whose id or key exists already. Undefined: "fail". */
  readonly onDuplicate?: OnDuplicate | undefined;
  /** Maximum number of records in a batch, 1 to 1000. Undefined: 500. */
  readonly batchRecords?: number | undefined;
}

/** @internal */
export function onDuplicateFrom(onDuplicate: OnDuplicate = "fail"): Choices {
  return enumFrom(Choices, onDuplicate, "onDuplicate");
}

/**
 * Yields records in batches, bounded in number and in bytes. The first is yielded even if it is empty, because
 * it names the namespace.
 *
 * @throws InvalidArgumentError - a setting is out of range, or a record cannot be sent
 * @internal
 */
export async function* batches(
  namespace: string,
  records: Iterable<ImportRecord> | AsyncIterable<ImportRecord>,
  batching: Batching,
): AsyncGenerator<ImportRequest, void, undefined> {
  const { onDuplicate, batchRecords = BATCH_RECORDS } = batching;
  if (!Number.isInteger(batchRecords) || batchRecords < 1 || batchRecords > RECORDS_MAX) {
    throw invalid("batchRecords", `must be 1 to ${RECORDS_MAX}, not ${shown(batchRecords)}`);
  }
  const isObject = typeof records === "object" && records !== null;
  if (!isObject || !(Symbol.iterator in records || Symbol.asyncIterator in records)) {
    throw invalid("records", `must be an array or another iterable, not ${typeOf(records)}`);
  }
  const choice = onDuplicateFrom(onDuplicate);
  let batch = create(ImportRequestSchema, { namespace, onDuplicate: choice });
  let bytes = 0;
  let isFirst = true;
  let index = 0;
  for await (const record of records) {
    const added = within(`records[${index++}]`, () => recordFrom(record));
    const count = batch.items.length + batch.states.length;
    if (count >= batchRecords || (count > 0 && bytes + added.bytes > BATCH_BYTES)) {
      yield batch;
      batch = create(ImportRequestSchema);
      bytes = 0;
      isFirst = false;
    }
    bytes += added.bytes;
    added.to(batch);
  }
  if (isFirst || batch.items.length + batch.states.length > 0) {
    yield batch;
  }
}

function recordFrom(record: ImportRecord): { bytes: number; to: (batch: ImportRequest) => void } {
  if (typeof record === "object" && record !== null && "key" in record) {
    const state = create(StateEntrySchema, newEntryFrom(record));
    const bytes = toBinary(StateEntrySchema, state).length;
    return { bytes, to: (batch) => batch.states.push(state) };
  }
  const item = create(MemoryItemSchema, importedItemFrom(record));
  return { bytes: toBinary(MemoryItemSchema, item).length, to: (batch) => batch.items.push(item) };
}
