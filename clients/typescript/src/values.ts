// Conversions of JSON values, times, durations and numbers to protobuf's types and back.

import type { JsonObject as ProtoObject } from "@bufbuild/protobuf";
import { create, fromJson, toJson } from "@bufbuild/protobuf";
import type { Duration, Timestamp, Value } from "@bufbuild/protobuf/wkt";
import { DurationSchema, TimestampSchema, ValueSchema } from "@bufbuild/protobuf/wkt";

import { invalid, shown, typeOf, within } from "./invalid.js";
import type { JsonObject, JsonValue } from "./json.js";
import { text } from "./shapes.js";
import type { Time, TimeInput } from "./times.js";

const INT32_MAX = 2 ** 31 - 1;
const FLOAT32_MAX = 3.4028234663852886e38;
const DURATION_MAX_MS = 315_576_000_000_000;

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
 * @throws InvalidArgumentError - a value is not a JSON value, an integer is beyond those that JavaScript holds
 * exactly, or values are nested too deeply for protobuf: some 30 objects (32 in metadata) or 45 arrays
 */
export function objectFrom(data: JsonObject, where: string, around = AROUND): ProtoObject {
  if (!isPlainObject(data)) {
    throw invalid(where, `${nameOf(data)} is not an object of JSON values`);
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
    throw invalid(where.slice(0, 100), "nested too deeply");
  }
  if (value === null || typeof value === "boolean") {
    return value;
  }
  if (typeof value === "string") {
    text(value, where);
    return value;
  }
  if (typeof value === "number") {
    return checkedNumber(value, where);
  }
  if (typeof value === "bigint") {
    throw invalid(where, `a bigint is not a JSON value; send ${value} as a string`);
  }
  if (Array.isArray(value)) {
    return Array.from(value, (element: unknown, index) => checked(element, `${where}[${index}]`, levels + 2));
  }
  if (isPlainObject(value)) {
    const given = Object.entries(value).filter(([, entry]) => entry !== undefined);
    // An object is a message with a map, whose entries are also messages.
    return Object.fromEntries(given.map(([key, entry]) => [key, checkedEntry(key, entry, where, levels + 3)]));
  }
  throw invalid(where, `${nameOf(value)} is not a JSON value`);
}

function checkedEntry(key: string, entry: unknown, where: string, levels: number): JsonValue {
  text(key, where);
  // Protobuf's library would set the object's prototype and lose the entry.
  if (key === "__proto__") {
    throw invalid(where, `"__proto__" cannot be the name of a value`);
  }
  return checked(entry, `${where}.${key}`, levels);
}

// From here JavaScript writes numbers with an exponent, so this was not meant as an integer.
const WRITTEN_AS_FLOAT = 1e21;

function checkedNumber(value: number, where: string): number {
  if (!Number.isFinite(value)) {
    throw invalid(where, `${value} is not a JSON value`);
  }
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < WRITTEN_AS_FLOAT) {
    throw invalid(where, `${value} is beyond 2^53; send it as a string`);
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
 * @throws InvalidArgumentError - it is not a time, or has no zone
 */
export function timestampFrom(time: TimeInput, where: string): Timestamp {
  const written = time instanceof Date ? isoOf(time, where) : time;
  const parts = typeof written === "string" ? TIME.exec(written) : null;
  const [, date, clock, fraction = "", zone = ""] = parts ?? [];
  const millis = Date.parse(`${date}T${clock}${zone.toUpperCase()}`);
  if (parts === null || Number.isNaN(millis)) {
    const example = "2026-05-01T12:00:00.123456Z";
    throw invalid(where, `${shown(time)} is not a time with a zone such as ${example}`);
  }
  return create(TimestampSchema, { seconds: BigInt(millis / 1000), nanos: Number(fraction.padEnd(9, "0")) });
}

function isoOf(time: Date, where: string): string {
  if (Number.isNaN(time.getTime())) {
    throw invalid(where, `the Date is invalid`);
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
 * @throws InvalidArgumentError - it is not finite, or longer than protobuf's maximum of some 10,000 years
 */
export function durationFrom(millis: number, where: string): Duration {
  if (!Number.isFinite(millis) || Math.abs(millis) > DURATION_MAX_MS) {
    throw invalid(where, `${shown(millis)} is not a duration in milliseconds`);
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
 * @throws InvalidArgumentError - it is not a whole number that JavaScript holds exactly
 */
export function int64From(value: number, where: string): bigint {
  if (!Number.isSafeInteger(value)) {
    throw invalid(where, `${shown(value)} is not a whole number`);
  }
  return BigInt(value);
}

/**
 * Checks a 32-bit integer; `where` names it in errors.
 *
 * @throws InvalidArgumentError - it is not a whole number, or too large
 */
export function int32From(value: number, where: string): number {
  if (!Number.isInteger(value) || Math.abs(value) > INT32_MAX) {
    throw invalid(where, `${shown(value)} is not a 32-bit integer`);
  }
  return value;
}

/**
 * Converts a vector of any kind to protobuf's list of numbers; `where` names it in errors.
 *
 * @throws InvalidArgumentError - it is not a list of numbers, or one exceeds 32 bits
 */
export function vectorFrom(vector: ArrayLike<number>, where: string): { values: number[] } {
  if (typeof vector !== "object" || vector === null || !Number.isSafeInteger(vector.length)) {
    throw invalid(where, `must be an array of numbers, not ${typeOf(vector)}`);
  }
  const values = Array.from(vector);
  const wrong = values.findIndex((value) => typeof value !== "number" || isBeyondFloat(value));
  if (wrong >= 0) {
    throw invalid(`${where}[${wrong}]`, `${shown(values[wrong])} is not a number of 32 bits`);
  }
  return { values };
}

/** Whether protobuf refuses a number as a float. The server rejects what is not finite. */
function isBeyondFloat(value: number): boolean {
  return Number.isFinite(value) && Math.abs(value) > FLOAT32_MAX;
}

/**
 * Converts the elements of an iterable; `where` names it in errors.
 *
 * @throws InvalidArgumentError - it is not iterable, or an element cannot be sent
 */
export function eachFrom<T, R>(values: Iterable<T>, convert: (value: T, index: number) => R, where: string): R[] {
  if (typeof values !== "object" || values === null || !(Symbol.iterator in values)) {
    throw invalid(where, `must be an array or another iterable, not ${typeOf(values)}`);
  }
  return Array.from(values, (value, index) => within(`${where}[${index}]`, () => convert(value, index)));
}

/** The parts of protobuf's description of an enum that names need. */
interface EnumNames {
  readonly [key: string | number]: string | number;
}

/**
 * Returns the number of an enum's value from its name in lower case; `where` names it in errors.
 *
 * @throws InvalidArgumentError - there is no such value
 */
export function enumFrom<N extends number>(names: EnumNames, value: string, where: string): N {
  const number = typeof value === "string" ? names[value.toUpperCase()] : undefined;
  if (typeof number !== "number") {
    throw invalid(where, `there is no ${shown(value)}`);
  }
  return number as N;
}

/** Returns the name of an enum's value in lower case, "unspecified" for a value of a newer server. */
export function enumTo<T extends string>(names: EnumNames, number: number): T {
  const name = names[number] ?? "UNSPECIFIED";
  return String(name).toLowerCase() as T;
}
