// State entries, and conversions to their protobuf messages and back.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";

import { STATE_ENTRY } from "./argument-shapes.js";
import type { StateEntry as ProtoEntry } from "./gen/memory_service/v1/state_pb.js";
import { StateEntrySchema } from "./gen/memory_service/v1/state_pb.js";
import type { JsonValue } from "./json.js";
import { given } from "./requests.js";
import { requireShape } from "./shapes.js";
import type { Time, TimeInput } from "./times.js";
import { durationFrom, int64From, optionalTimeTo, timestampFrom, valueFrom, valueTo } from "./values.js";

/** A state key, its value and facts about them. */
export interface StateEntry {
  /** The entry's key, 1 to 512 bytes. */
  readonly key: string;
  /** Any JSON value. Undefined: omitted, in lists of keys and after a save. */
  readonly value?: JsonValue | undefined;
  /** Number of writes of the key, from 1. */
  readonly version: number;
  /** Purpose of the value, in the writer's words. */
  readonly description: string;
  /** Size of the value as compact JSON. */
  readonly sizeBytes: number;
  /** Beginning of the value as JSON, in lists that ask for it. */
  readonly preview: string;
  /** When the key was created. */
  readonly createTime?: Time | undefined;
  /** When this version was written. */
  readonly updateTime?: Time | undefined;
  /** When the entry expires. Undefined: never. */
  readonly expireTime?: Time | undefined;
  /** Revision of the namespace at which this version was written. */
  readonly revision: number;
}

/** A state entry to be imported. A `StateEntry` is one too; fields that only the server sets are not sent. */
export interface NewStateEntry {
  /** The entry's key, 1 to 512 bytes. */
  readonly key: string;
  /** Any JSON value. */
  readonly value?: JsonValue | undefined;
  /** Purpose of the value. */
  readonly description?: string | undefined;
  /** When the entry expires. Undefined: never. */
  readonly expireTime?: TimeInput | undefined;
}

/** How a value is saved. */
export interface ValueOptions {
  /** Write only if this is the key's version; 0: only if there is no such key. Undefined: always. */
  readonly expectedVersion?: number | undefined;
  /** Milliseconds until the entry expires. Undefined: it never does. */
  readonly ttlMs?: number | undefined;
  /** Purpose of the value. Undefined: keep the current description. */
  readonly description?: string | undefined;
}

/**
 * The fields common to the requests that save a value.
 *
 * @internal
 */
export function savedFrom(key: string, value: JsonValue, options: ValueOptions) {
  return {
    key,
    value: valueFrom(value, "value"),
    expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
    ttl: given(options.ttlMs, durationFrom, "ttlMs"),
    description: options.description,
  };
}

/** @internal */
export function newEntryFrom(entry: NewStateEntry): MessageInitShape<typeof StateEntrySchema> {
  requireShape(entry, STATE_ENTRY, "");
  const { key, value, description = "", expireTime } = entry;
  return {
    key,
    description,
    value: given(value, valueFrom, "value"),
    expireTime: given(expireTime, timestampFrom, "expireTime"),
  };
}

/** @internal */
export function entryTo(entry: ProtoEntry | undefined): StateEntry {
  const proto = entry ?? create(StateEntrySchema);
  return {
    key: proto.key,
    value: valueTo(proto.value),
    version: Number(proto.version),
    description: proto.description,
    sizeBytes: Number(proto.sizeBytes),
    preview: proto.preview,
    createTime: optionalTimeTo(proto.createTime),
    updateTime: optionalTimeTo(proto.updateTime),
    expireTime: optionalTimeTo(proto.expireTime),
    revision: Number(proto.revision),
  };
}
