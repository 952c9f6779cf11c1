// Conversions of JSON values, times, durations and numbers to protobuf's types and back.

import type { JsonObject as ProtoObject } from "@bufbuild/protobuf";
import { create, fromJson, toJson } from "@bufbuild/protobuf";
import type { Duration, Timestamp, Value } from "@bufbuild/protobuf/wkt";
import { DurationSchema, TimestampSchema, ValueSchema } from "@bufbuild/protobuf/wkt";

import type { JsonObject, JsonValue } from "./json.js";
import type { Time, TimeInput } from "./times.js";

const INT32_MAX = 2 ** 31 - 1;

/** Maximum nesting of messages: protobuf reads no more. */
const LEVELS_MAX = 100;

/** More messages than there are around a JSON value. */
const AROUND = 10;

/** How many messages there are around a field of an item, at most: an operation of a batch adds an item. */
export const AROUND_ITEM_FIELD = 4;

/**
 * Checks an object of JSON values and returns it as protobuf takes it; `where` names it in errors, `around` counts
 * the messages around it.
 *
 * @throws TypeError - a value is not a JSON value
 * @throws RangeError - an integer is beyond those that JavaScript holds exactly, or values are nested too deeply
 * for protobuf: some 30 objects (32 in metadata) or 45 arrays
 */
export function objectFrom(data: JsonObject, where: string, around = AROUND): ProtoObject {
  if (!isPlainObject(data)) {
    throw new TypeError(`${where}: ${nameOf(data)} is not an object of JSON values`);
  }
  return checked(data, where, around) as ProtoObject;
}

/** Returns an object of JSON values, an empty one if unset. */
export function objectTo(data: ProtoObject | undefined): JsonObject {
  return data ?? {};
}

/** Converts a JSON value; `where` names it in errors. Throws like `objectFrom`. */
export function valueFrom(value: JsonValue, where: string): Value {
  return fromJson(ValueSchema, checked(value, where, AROUND + 1) as never);
}

/** Returns a JSON value. Undefined: unset. */
export function valueTo(value: Value | undefined): JsonValue | undefined {
  return value === undefined || value.kind.case === undefined ? undefined : toJson(ValueSchema, value);
}

/** Returns a copy of a JSON value without undefined properties. */
function checked(value: unknown, where: string, levels: number): JsonValue {
  if (levels > LEVELS_MAX) {
    throw new RangeError(`${where.slice(0, 100)}: nested too deeply`);
  }
  if (value === null || typeof value === "string" || typeof value === "boolean") {
    return value;
  }
  if (typeof value === "number") {
    return checkedNumber(value, where);
  }
  if (typeof value === "bigint") {
    throw new RangeError(`${where}: a bigint is not a JSON value; send ${value} as a string`);
  }
  if (Array.isArray(value)) {
    return Array.from(value, (element: unknown, index) => checked(element, `${where}[${index}]`, levels + 2));
  }
  if (isPlainObject(value)) {
    const given = Object.entries(value).filter(([, entry]) => entry !== undefined);
    // An object is a message with a map, whose entries are also messages.
    return Object.fromEntries(given.map(([key, entry]) => [key, checkedEntry(key, entry, where, levels + 3)]));
  }
  throw new TypeError(`${where}: ${nameOf(value)} is not a JSON value`);
}

function checkedEntry(key: string, entry: unknown, where: string, levels: number): JsonValue {
  // Protobuf's library would set the object's prototype and lose the entry.
  if (key === "__proto__") {
    throw new TypeError(`${where}: "__proto__" cannot be the name of a value`);
  }
  return checked(entry, `${where}.${key}`, levels);
}

// From here JavaScript writes numbers with an exponent, so this was not meant as an integer.
const WRITTEN_AS_FLOAT = 1e21;

function checkedNumber(value: number, where: string): number {
  if (!Number.isFinite(value)) {
    throw new RangeError(`${where}: ${value} is not a JSON value`);
  }
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < WRITTEN_AS_FLOAT) {
    throw new RangeError(`${where}: ${value} is beyond 2^53; send it as a string`);
  }
  return value;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) {
    return false;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  // Plain objects of another realm, as in `node:vm` and test runners, have a different root prototype.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function nameOf(value: unknown): string {
  if (value === null || typeof value !== "object") {
    return typeof value === "function" ? "a function" : String(value);
  }
  return `a ${value.constructor?.name ?? "object"}`;
}

const TIME = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)$/;

/**
 * Converts a time, to the nanosecond if it has them; `where` names it in errors.
 *
 * @throws RangeError - it is not a time, or has no zone
 */
export function timestampFrom(time: TimeInput, where: string): Timestamp {
  const parts = time instanceof Date ? TIME.exec(isoOf(time, where)) : TIME.exec(time);
  const [, date, clock, fraction = "", zone = ""] = parts ?? [];
  const millis = Date.parse(`${date}T${clock}${zone.toUpperCase()}`);
  if (parts === null || Number.isNaN(millis)) {
    const example = "2026-05-01T12:00:00.123456Z";
    throw new RangeError(`${where}: ${JSON.stringify(time)} is not a time with a zone such as ${example}`);
  }
  return create(TimestampSchema, { seconds: BigInt(millis / 1000), nanos: Number(fraction.padEnd(9, "0")) });
}

function isoOf(time: Date, where: string): string {
  if (Number.isNaN(time.getTime())) {
    throw new RangeError(`${where}: the Date is invalid`);
  }
  return time.toISOString();
}

/** Returns a time as text, to the microsecond. */
export function timeTo(timestamp: Timestamp): Time {
  const whole = new Date(Number(timestamp.seconds) * 1000).toISOString().slice(0, -5);
  const micros = Math.floor(timestamp.nanos / 1000);
  return `${whole}.${String(micros).padStart(6, "0")}Z`;
}

/** Returns a time as text. Undefined: unset. */
export function optionalTimeTo(timestamp: Timestamp | undefined): Time | undefined {
  return timestamp === undefined ? undefined : timeTo(timestamp);
}

/**
 * Converts a duration in milliseconds, to the nanosecond; `where` names it in errors.
 *
 * @throws RangeError - it is not finite
 */
export function durationFrom(millis: number, where: string): Duration {
  if (!Number.isFinite(millis)) {
    throw new RangeError(`${where}: ${millis} is not a duration`);
  }
  const seconds = Math.trunc(millis / 1000);
  const nanos = Math.round((millis - seconds * 1000) * 1_000_000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos });
}

/** Returns a duration in milliseconds. */
export function millisTo(duration: Duration | undefined): number {
  return duration === undefined ? 0 : Number(duration.seconds) * 1000 + duration.nanos / 1_000_000;
}

/**
 * Converts a whole number to a 64-bit integer; `where` names it in errors.
 *
 * @throws RangeError - it is not a whole number that JavaScript holds exactly
 */
export function int64From(value: number, where: string): bigint {
  if (!Number.isSafeInteger(value)) {
    throw new RangeError(`${where}: ${value} is not a whole number`);
  }
  return BigInt(value);
}

/**
 * Checks a 32-bit integer; `where` names it in errors.
 *
 * @throws RangeError - it is not a whole number, or too large
 */
export function int32From(value: number, where: string): number {
  if (!Number.isInteger(value) || Math.abs(value) > INT32_MAX) {
    throw new RangeError(`${where}: ${value} is not a 32-bit integer`);
  }
  return value;
}

/** Converts a vector of any kind to protobuf's list of numbers. */
export function vectorFrom(vector: ArrayLike<number>): { values: number[] } {
  return { values: Array.from(vector) };
}

/** The parts of protobuf's description of an enum that names need. */
interface EnumNames {
  readonly [key: string | number]: string | number;
}

/**
 * Returns the number of an enum's value from its name in lower case; `where` names it in errors.
 *
 * @throws RangeError - there is no such value
 */
export function enumFrom<N extends number>(names: EnumNames, value: string, where: string): N {
  const number = names[value.toUpperCase()];
  if (typeof number !== "number") {
    throw new RangeError(`${where}: there is no ${JSON.stringify(value)}`);
  }
  return number as N;
}

/** Returns the name of an enum's value in lower case, "unspecified" for a value of a newer server. */
export function enumTo<T extends string>(names: EnumNames, number: number): T {
  const name = names[number] ?? "UNSPECIFIED";
  return String(name).toLowerCase() as T;
}
