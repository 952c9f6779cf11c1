// The messages of streams that can be resumed.

import { itemTo } from "./convert.js";
import type { Event } from "./following.js";
import type { ExportResponse, WatchResponse } from "./gen/memory_service/v1/memory_pb.js";
import { ChangeType as Types } from "./gen/memory_service/v1/memory_pb.js";
import type { MemoryItem } from "./items.js";
import type { Change, ChangeType } from "./memory-options.js";
import type { StateEntry } from "./state-entries.js";
import { entryTo } from "./state-entries.js";
import { enumTo } from "./values.js";

/** Reads one message of a watch. */
export function changeEvent({ change, revision }: WatchResponse): Event<Change> {
  if (change === undefined) {
    return { value: undefined, revision, key: "" };
  }
  const { type, itemId, item, stateKey, state } = change;
  const value = {
    type: enumTo<ChangeType>(Types, type),
    revision: Number(change.revision),
    itemId,
    item: item && itemTo(item),
    stateKey,
    state: state && entryTo(state),
  };
  return { value, revision, key: keyOf(type, itemId, stateKey, change.revision) };
}

/** Reads one message of an export. */
export function recordEvent({ record, revision }: ExportResponse): Event<MemoryItem | StateEntry> {
  switch (record.case) {
    case "item":
      return { value: itemTo(record.value), revision, key: keyOf("item", record.value.id, record.value.revision) };
    case "state":
      return { value: entryTo(record.value), revision, key: keyOf("state", record.value.key, record.value.revision) };
    case undefined:
      return { value: undefined, revision, key: "" };
  }
}

function keyOf(...parts: readonly (string | number | bigint)[]): string {
  return parts.join("\0");
}
