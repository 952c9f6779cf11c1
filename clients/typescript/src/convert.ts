// Conversions of items and messages to their protobuf messages and back.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";

import { CONTENTS, ITEM, MESSAGE, PARTS } from "./argument-shapes.js";
import { degradedTo } from "./degradation.js";
import type * as pb from "./gen/memory_service/v1/memory_pb.js";
import type {
  BinaryPartSchema,
  ChatMessageSchema,
  PartSchema,
  ToolCallResultSchema,
} from "./gen/memory_service/v1/memory_pb.js";
import {
  ItemKind as Kinds,
  MemoryItemSchema,
  RetrieveMode as Modes,
  Role as Roles,
} from "./gen/memory_service/v1/memory_pb.js";
import { invalid, within } from "./invalid.js";
import type { ImportedItem, ItemKind, MemoryItem, NewItem } from "./items.js";
import type { ItemChanges, RetrieveMode } from "./memory-options.js";
import type { BinaryPart, ChatMessage, Content, Part, Role, ToolCallResult } from "./messages.js";
import { readableText } from "./messages.js";
import { provenanceFrom, provenanceTo } from "./provenance.js";
import { given } from "./requests.js";
import { requireProperties, requireShape, shapeOf, text } from "./shapes.js";
import {
  AROUND_ITEM_FIELD,
  durationFrom,
  eachFrom,
  enumFrom,
  enumTo,
  int64From,
  objectFrom,
  objectTo,
  optionalTimeTo,
  timestampFrom,
  valueFrom,
  valueTo,
  vectorFrom,
} from "./values.js";

type ItemInit = MessageInitShape<typeof MemoryItemSchema>;
type ContentInit = NonNullable<ItemInit["content"]>;

/**
 * Converts the content of an item.
 *
 * @throws InvalidArgumentError - an item cannot hold it
 */
export function contentFrom(content: Content | string | undefined): ContentInit {
  if (typeof content === "string") {
    text(content, "content");
    return { case: "text", value: content };
  }
  if (content === undefined) {
    return { case: undefined };
  }
  requireProperties(content, shapeOf(content, CONTENTS, "content"), "content");
  return within("content", () => variantFrom(content));
}

function variantFrom(content: Content): ContentInit {
  switch (content.type) {
    case "text":
      return { case: "text", value: content.text };
    case "data":
      return { case: "data", value: objectFrom(content.data, "data", AROUND_ITEM_FIELD) };
    case "chat_message":
      return { case: "chatMessage", value: messageFrom(content) };
    case "tool_call_result":
      return { case: "toolCallResult", value: resultFrom(content) };
  }
}

/**
 * Converts an item to be written, without the fields that only the server sets.
 *
 * @throws InvalidArgumentError - it has an unknown property, or one that cannot be sent
 */
export function newItemFrom(item: NewItem): ItemInit {
  requireShape(item, ITEM, "");
  const { id = "", sessionId = "", labels = {}, metadata } = item;
  return {
    id,
    sessionId,
    content: contentFrom(item.content),
    createTime: given(item.createTime, timestampFrom, "createTime"),
    expireTime: given(item.expireTime, timestampFrom, "expireTime"),
    ttl: given(item.ttlMs, durationFrom, "ttlMs"),
    labels: { ...labels },
    metadata: metadata === undefined ? undefined : objectFrom(metadata, "metadata", AROUND_ITEM_FIELD),
    embedding: given(item.embedding, vectorFrom, "embedding"),
    importance: item.importance,
    index: item.index,
    provenance: given(item.provenance, provenanceFrom, "provenance"),
  };
}

/** Converts an item to be added; a content or a string stands for an item with this content. */
export function itemFrom(item: NewItem | Content | string): ItemInit {
  const isContent = typeof item !== "object" || item === null || "type" in item;
  return newItemFrom(isContent ? { content: item } : item);
}

/** Converts an item to be imported, with its kind. */
export function importedItemFrom(item: ImportedItem): ItemInit {
  const converted = newItemFrom(item);
  const { kind = "plain", facetJson = "" } = item;
  return { ...converted, kind: kindFrom(kind, "kind"), facetJson };
}

/** Converts the changes of an item; fields that are in the mask and not set are cleared by the server. */
export function changesFrom(id: string, changes: ItemChanges): { item: ItemInit; updateMask: { paths: string[] } } {
  return within("changes", () => changedFrom(id, changes));
}

function changedFrom(id: string, changes: ItemChanges) {
  const { content, sessionId = "", labels = {}, metadata, expireTime } = changes;
  const paths = {
    content: "content",
    sessionId: "session_id",
    labels: "labels",
    metadata: "metadata",
    createTime: "create_time",
    expireTime: "expire_time",
    ttlMs: "ttl",
    embedding: "embedding",
    importance: "importance",
    index: "index",
  };
  const names = Object.entries(paths).filter(([name]) => changes[name as keyof ItemChanges] !== undefined);
  const item = {
    id,
    content: contentFrom(content),
    sessionId,
    labels: { ...labels },
    metadata: given(metadata, objectFrom, "metadata"),
    createTime: given(changes.createTime, timestampFrom, "createTime"),
    expireTime: given(expireTime ?? undefined, timestampFrom, "expireTime"),
    ttl: given(changes.ttlMs, durationFrom, "ttlMs"),
    embedding: given(changes.embedding, vectorFrom, "embedding"),
    importance: changes.importance ?? undefined,
    index: changes.index ?? undefined,
  };
  return { item, updateMask: { paths: names.map(([, path]) => path) } };
}

/**
 * Returns the number of a kind of item; for plain items, that of "unspecified".
 *
 * @throws InvalidArgumentError - there is no such kind
 */
export function kindFrom(kind: ItemKind, where: string): Kinds {
  if (kind === "plain") {
    return Kinds.UNSPECIFIED;
  }
  const number = enumFrom<Kinds>(Kinds, kind, where);
  if (number === Kinds.UNSPECIFIED) {
    throw invalid(where, "an item of a kind that this client does not know cannot be sent");
  }
  return number;
}

function kindTo(kind: Kinds): ItemKind {
  return kind === Kinds.UNSPECIFIED ? "plain" : enumTo(Kinds, kind);
}

/** Converts an item; `degraded` is what the server could not do when writing it. */
export function itemTo(item: pb.MemoryItem | undefined, degraded: readonly pb.Degradation[] = []): MemoryItem {
  const proto = item ?? create(MemoryItemSchema);
  const content = contentTo(proto.content);
  return {
    content,
    id: proto.id,
    sessionId: proto.sessionId,
    createTime: optionalTimeTo(proto.createTime),
    updateTime: optionalTimeTo(proto.updateTime),
    expireTime: optionalTimeTo(proto.expireTime),
    labels: proto.labels,
    metadata: objectTo(proto.metadata),
    embedding: proto.embedding?.values,
    importance: proto.importance,
    index: proto.index,
    provenance: provenanceTo(proto.provenance),
    revision: Number(proto.revision),
    kind: kindTo(proto.kind),
    facetJson: proto.facetJson,
    text: readableText(content),
    speaker: speakerOf(content),
    degraded: degradedTo(degraded),
  };
}

function contentTo(content: pb.MemoryItem["content"]): Content | undefined {
  switch (content.case) {
    case "text":
      return { type: "text", text: content.value };
    case "data":
      return { type: "data", data: content.value };
    case "chatMessage":
      return messageTo(content.value);
    case "toolCallResult":
      return resultTo(content.value);
    case undefined:
      return undefined;
  }
}

function speakerOf(content: Content | undefined): string {
  if (content?.type === "chat_message") {
    return content.name || content.role;
  }
  return content?.type === "tool_call_result" ? content.name || "tool" : "";
}

/** Converts a chat message with all its parts. */
export function messageFrom(message: ChatMessage): MessageInitShape<typeof ChatMessageSchema> {
  requireProperties(message, MESSAGE);
  const { messageId = "", role, name, model, parts } = message;
  return {
    messageId,
    role: enumFrom<Roles>(Roles, role, "role"),
    name,
    model: model && { provider: model.provider ?? "", id: model.id ?? "" },
    parts: eachFrom(parts, partFrom, "parts"),
    createTime: given(message.createTime, timestampFrom, "createTime"),
  };
}

/** Converts a chat message. Parts of a kind that only a newer server knows are omitted. */
export function messageTo(proto: pb.ChatMessage): ChatMessage {
  const parts = proto.parts.map(({ part }) => partTo(part)).filter((part) => part !== undefined);
  return {
    type: "chat_message",
    role: enumTo<Role>(Roles, proto.role),
    parts,
    name: proto.name,
    messageId: proto.messageId,
    model: proto.model && { provider: proto.model.provider, id: proto.model.id },
    createTime: optionalTimeTo(proto.createTime),
  };
}

function partFrom(part: Part): MessageInitShape<typeof PartSchema> {
  requireProperties(part, shapeOf(part, PARTS, ""));
  switch (part.type) {
    case "text":
      return { part: { case: "text", value: part.text } };
    case "data":
      return { part: { case: "data", value: objectFrom(part.data, "data") } };
    case "binary":
      return { part: { case: "binary", value: binaryFrom(part) } };
    case "tool_call": {
      const { name, toolCallId = "" } = part;
      const args = given(part.arguments, objectFrom, "arguments");
      return { part: { case: "toolCall", value: { name, toolCallId, arguments: args } } };
    }
    case "tool_call_result":
      return { part: { case: "toolCallResult", value: resultFrom(part) } };
  }
}

function partTo(part: pb.Part["part"]): Part | undefined {
  switch (part.case) {
    case "text":
      return { type: "text", text: part.value };
    case "data":
      return { type: "data", data: part.value };
    case "binary":
      return binaryTo(part.value);
    case "toolCall": {
      const { name, toolCallId, arguments: args } = part.value;
      return { type: "tool_call", name, toolCallId, arguments: args };
    }
    case "toolCallResult":
      return resultTo(part.value);
    case undefined:
      return undefined;
  }
}

function binaryFrom(part: BinaryPart): MessageInitShape<typeof BinaryPartSchema> {
  const { content = new Uint8Array(), mimeType = "", name, url, contentLength } = part;
  return { content, mimeType, name, url, contentLength: given(contentLength, int64From, "contentLength") };
}

function binaryTo(proto: pb.BinaryPart): BinaryPart {
  const { mimeType, name, url, contentLength } = proto;
  // A copy, because protobuf's bytes are a view of the whole response and would keep it in memory.
  const content = new Uint8Array(proto.content);
  const length = contentLength === undefined ? undefined : Number(contentLength);
  return { type: "binary", content, mimeType, name, url, contentLength: length };
}

function resultFrom(result: ToolCallResult): MessageInitShape<typeof ToolCallResultSchema> {
  const { toolCallId = "", name = "", isError = false } = result;
  return { toolCallId, name, isError, result: given(result.result, valueFrom, "result") };
}

function resultTo(proto: pb.ToolCallResult): ToolCallResult {
  const { toolCallId, name, isError } = proto;
  return { type: "tool_call_result", toolCallId, name, isError, result: valueTo(proto.result) };
}

/**
 * Returns the number of a search mode; `where` names it in errors.
 *
 * @throws InvalidArgumentError - there is no such mode
 */
export function modeFrom(mode: RetrieveMode, where: string): Modes {
  return enumFrom(Modes, mode, where);
}
