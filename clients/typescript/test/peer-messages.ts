// Between protobuf's messages and the values that the client takes and gives, by descriptors.
//
// The client's names are those of protobuf's JSON, so only the differences are converted here: enums
// are words in lower case, lengths of time are milliseconds in a property `...Ms`, 64-bit integers are
// numbers, and what may be one of several kinds is an object with a `type`.

import type { DescEnum, DescField, DescMessage, JsonValue, Message } from "@bufbuild/protobuf";
import { fromJson, isFieldSet, ScalarType, toJson } from "@bufbuild/protobuf";
import type { Duration, Value } from "@bufbuild/protobuf/wkt";
import { DurationSchema, TimestampSchema, ValueSchema } from "@bufbuild/protobuf/wkt";

/** A request says something that the public methods of the client have no place for. */
export class Inexpressible extends Error {}

/** Values by the names that the client has for them. */
export type Native = Record<string, unknown>;

/** What the client sends of messages inside a request; of those not named here, all fields. */
const SENT: Readonly<Record<string, readonly string[]>> = {
  RetrieveOptions: [
    "limit",
    "queryText",
    "queryEmbedding",
    "sessionId",
    "filter",
    "labels",
    "startTime",
    "endTime",
    "minScore",
    "mode",
    "contextWindow",
    "now",
    "weights",
    "maxTokens",
    "rerank",
    "recordUsage",
    "orderBy",
    "skip",
    "explain",
    "includeEmbedding",
    "pageSize",
    "kinds",
    "minTrust",
    "sources",
    "queries",
    "minRelevance",
    "neighbourWeight",
    "wholeExchanges",
    "timeZone",
  ],
  MemoryItem: [
    "id",
    "sessionId",
    "content",
    "createTime",
    "expireTime",
    "ttlMs",
    "labels",
    "metadata",
    "embedding",
    "importance",
    "index",
    "provenance",
    "kind",
    "facetJson",
  ],
  UserMemory: [
    "id",
    "content",
    "category",
    "reasoning",
    "importance",
    "validFromTime",
    "validUntilTime",
    "expireTime",
    "ttlMs",
    "labels",
    "metadata",
  ],
  Importance: ["score"],
  Document: [
    "id",
    "text",
    "title",
    "source",
    "sessionId",
    "labels",
    "metadata",
    "createTime",
    "expireTime",
    "ttlMs",
  ],
  OriginalMessage: ["content", "sender", "createTime"],
  MemorySource: ["sessionId", "itemIds", "quote", "actor"],
  StateEntry: ["key", "value", "description", "expireTime"],
};

/** What the client's types require, where a message may leave it out. */
const REQUIRED: Readonly<Record<string, Native>> = {
  ChatMessage: { type: "chat_message", role: "unspecified", parts: [] },
  ToolCall: { name: "" },
  OriginalMessage: { content: "" },
  StateEntry: { key: "" },
  ReplaceText: { oldText: "", newText: "" },
  InsertText: { afterLine: 0, text: "" },
  AppendText: { text: "" },
};

/** Parses a message of protobuf's JSON. */
export function parsed(desc: DescMessage, json: JsonValue): Message {
  try {
    return fromJson(desc, json);
  } catch (error) {
    throw new Inexpressible(`${desc.name}: ${String(error)}`);
  }
}

/**
 * Converts the fields of a request that are set.
 *
 * @throws Inexpressible - one of them is not in `sent`, or has a value that the client cannot send
 */
export function nativeOf(desc: DescMessage, message: Message, sent = SENT[desc.name]): Native {
  const native: Native = { ...REQUIRED[desc.name] };
  for (const field of desc.fields.filter((each) => isFieldSet(message, each))) {
    const name = field.oneof?.localName ?? nameOf(field);
    if (sent !== undefined && !sent.includes(name)) {
      throw new Inexpressible(`${desc.name}.${field.name}`);
    }
    native[name] = fieldValue(field, message as unknown as Native);
  }
  return native;
}

function fieldValue(field: DescField, message: Native): unknown {
  if (field.oneof) {
    const { value } = message[field.oneof.localName] as { value: unknown };
    return typed(field.localName, singular(field, value));
  }
  const value = message[field.localName];
  if (field.fieldKind === "list") {
    return (value as unknown[]).map((element) => singular(field, element));
  }
  return field.fieldKind === "map" ? { ...(value as Native) } : singular(field, value);
}

function singular(field: DescField, value: unknown): unknown {
  if (field.message) {
    return messageValue(field.message, value as Message);
  }
  if (field.enum) {
    return wordOf(field.enum, value as number);
  }
  if (typeof value === "bigint") {
    return safeNumber(field, value);
  }
  return value;
}

function messageValue(desc: DescMessage, message: Message): unknown {
  switch (desc.name) {
    case "Struct":
      return message;
    case "Value":
      return toJson(ValueSchema, message as Value);
    case "Timestamp":
      return toJson(TimestampSchema, message as never);
    case "Duration":
      return millisOf(message as Duration);
    case "Embedding":
      return nativeOf(desc, message)["values"] ?? [];
    case "Part":
      return nativeOf(desc, message)["part"] ?? inexpressible("Part");
    default:
      return nativeOf(desc, message);
  }
}

/** Says of which type a value is that may be one of several. */
function typed(name: string, value: unknown): Native {
  const type = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return type === "text" || type === "data" ? { type, [type]: value } : { type, ...(value as Native) };
}

function millisOf({ seconds, nanos }: Duration): number {
  return Number(seconds) * 1000 + nanos / 1_000_000;
}

function safeNumber(field: DescField, value: bigint): number {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : inexpressible(`${field.parent.name}.${field.name}: ${value}`);
}

function wordOf(desc: DescEnum, number: number): string {
  if (desc.name === "ItemKind" && number === 0) {
    return "plain";
  }
  const value = desc.value[number] ?? inexpressible(`${desc.name}: ${number}`);
  return value.localName.toLowerCase();
}

function inexpressible(what: string): never {
  throw new Inexpressible(what);
}

function nameOf(field: DescField): string {
  return field.message?.typeName === DurationSchema.typeName ? `${field.localName}Ms` : field.localName;
}

/** Returns the client's result as a message in protobuf's JSON, without the fields that it lacks. */
export function written(desc: DescMessage, native: Native): JsonValue {
  return toJson(desc, fromJson(desc, jsonOf(desc, native)));
}

function jsonOf(desc: DescMessage, native: Native): JsonValue {
  const json: Record<string, JsonValue> = {};
  for (const field of desc.fields) {
    const value = native[nameOf(field)];
    if (value !== undefined) {
      json[field.jsonName] = fieldJson(field, value);
    }
  }
  return json;
}

function fieldJson(field: DescField, value: unknown): JsonValue {
  if (field.fieldKind === "list") {
    return (value as readonly unknown[]).map((element) => singularJson(field, element));
  }
  if (field.fieldKind === "map") {
    const entries = Object.entries(value as Native);
    return Object.fromEntries(entries.map(([key, element]) => [key, singularJson(field, element)]));
  }
  return singularJson(field, value);
}

function singularJson(field: DescField, value: unknown): JsonValue {
  if (field.message) {
    return messageJson(field.message, value);
  }
  if (field.enum) {
    return nameOfWord(field.enum, value as string);
  }
  if (value instanceof Uint8Array) {
    return Buffer.from(value).toString("base64");
  }
  return field.scalar === ScalarType.INT64 ? String(value) : (value as JsonValue);
}

function messageJson(desc: DescMessage, value: unknown): JsonValue {
  switch (desc.name) {
    case "Struct":
    case "Value":
    case "Timestamp":
      return value as JsonValue;
    case "Duration":
      return `${((value as number) / 1000).toFixed(9)}s`;
    case "Embedding":
      return { values: value as number[] };
    case "Explanation":
      return jsonOf(desc, { contributions: value });
    case "Part":
      return jsonOf(desc, untyped(value as Native));
    case "MemoryItem": {
      // The item's own `text` and `speaker` are there for people to read.
      const { content, text: _text, ...fields } = value as Native;
      return jsonOf(desc, { ...fields, ...untyped(content as Native | undefined) });
    }
    default:
      return jsonOf(desc, value as Native);
  }
}

function untyped(content: Native | undefined): Native {
  if (content === undefined) {
    return {};
  }
  const { type, ...fields } = content;
  if (type === "text" || type === "data") {
    return fields;
  }
  return { [String(type).replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())]: fields };
}

function nameOfWord(desc: DescEnum, word: string): string {
  const known = desc.name === "ItemKind" && word === "plain" ? "unspecified" : word.toLowerCase();
  const found = desc.values.find((value) => value.localName.toLowerCase() === known);
  if (found === undefined) {
    throw new Error(`${desc.name} has no ${word}`);
  }
  return found.name;
}
