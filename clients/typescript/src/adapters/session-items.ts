// Items of a session of the OpenAI Agents SDK as items of the server: verbatim JSON beside a readable message.

import type { MemoryItem, NewItem } from "../items.js";
import type { JsonObject, JsonValue } from "../json.js";
import type { BinaryPart, ChatMessage, Part, Role } from "../messages.js";
import { chatMessage, readableText, text, toolCall } from "../messages.js";
import { invalid } from "../invalid.js";

/** The label of every item of a session; its value is the session's id. Items of the Python SDK have another form. */
export const SESSION_LABEL = "openai_agents_js_session";
/** Metadata key of the JSON. JSON too large for metadata is in files, which joined are the JSON in UTF-8. */
const VERBATIM_KEY = "openai_agents_js_items";
const VERBATIM_TYPE = "application/vnd.openai-agents-js.items+json";

const FILE_BYTES = 1024 * 1024;
/** Part of the 64 KiB of metadata that the JSON may take: files are read as quickly, but hidden from filters. */
const METADATA_BYTES = 15 * 1024;
const READABLE_CHARACTERS = 12_000;
const PARTS_MAX = 200;
/** A batch has up to 1000 operations; one deletes the items that others replace. */
const RECORDS_MAX = 999;
const NAME_CHARACTERS = 250;
const ROLES: Readonly<Record<string, Role>> = { user: "user", assistant: "assistant", system: "system" };

/** What an item of the SDK may have; its parts differ by its type. */
type Fields = Readonly<Record<string, unknown>>;

/**
 * Returns the records of items: one for each, or for several if there are more than 999.
 *
 * @throws InvalidArgumentError - an item is not JSON
 */
export function recordsOf(items: readonly unknown[], sessionId: string): NewItem[] {
  const size = Math.ceil(items.length / RECORDS_MAX);
  const records: NewItem[] = [];
  for (let at = 0; at < items.length; at += size) {
    records.push(recordOf(items.slice(at, at + size), sessionId));
  }
  return records;
}

/** Returns the record of some items, at least one. */
export function recordOf(items: readonly unknown[], sessionId: string): NewItem & { readonly content: ChatMessage } {
  const verbatim = jsonOf(items);
  const packed = new TextEncoder().encode(verbatim);
  const isSmall = packed.length <= METADATA_BYTES;
  const message = readable(items as readonly Fields[]);
  return {
    content: isSmall ? message : { ...message, parts: [...message.parts, ...filesOf(packed)] },
    sessionId,
    labels: { [SESSION_LABEL]: sessionId },
    metadata: isSmall ? { [VERBATIM_KEY]: verbatim } : {},
  };
}

/** Returns the items of a record, as given. Empty: it is not a record of a session. */
export function itemsOf(record: MemoryItem): unknown[] {
  const verbatim = record.metadata[VERBATIM_KEY] ?? Buffer.concat(filesIn(record)).toString();
  try {
    const items: unknown = JSON.parse(String(verbatim));
    return Array.isArray(items) ? items : [];
  } catch {
    return [];
  }
}

function jsonOf(items: readonly unknown[]): string {
  try {
    return JSON.stringify(items);
  } catch (error) {
    throw invalid("items", `an item is not JSON: ${(error as Error).message}`);
  }
}

function filesOf(packed: Uint8Array): BinaryPart[] {
  const files: BinaryPart[] = [];
  for (let at = 0; at < packed.length; at += FILE_BYTES) {
    files.push({ type: "binary", content: packed.slice(at, at + FILE_BYTES), mimeType: VERBATIM_TYPE });
  }
  return files;
}

function filesIn({ content }: MemoryItem): Uint8Array[] {
  const parts = content?.type === "chat_message" ? content.parts : [];
  return parts.flatMap((part) =>
    part.type === "binary" && part.mimeType === VERBATIM_TYPE && part.content !== undefined ? [part.content] : [],
  );
}

// The readable message: for people, searches and other clients.

function readable(items: readonly Fields[]): ChatMessage {
  const messages = items.map(messageOf);
  const [first] = messages as [ChatMessage];
  const joined = messages.map((each) => text(`${each.role}: ${readableText(each)}`));
  const parts = messages.length === 1 ? first.parts : joined;
  const shown = readableText({ ...first, parts });
  const isShort = shown.length <= READABLE_CHARACTERS && parts.length <= PARTS_MAX;
  return { ...first, parts: isShort ? parts : [text(`${shown.slice(0, READABLE_CHARACTERS).toWellFormed()} ...`)] };
}

function messageOf(item: Fields): ChatMessage {
  const { type = "message", role, content, name, callId, id } = item;
  const details = { messageId: nameOf(id) };
  if (type === "message") {
    return chatMessage(ROLES[String(role)] ?? "user", said(content), details);
  }
  if (type === "reasoning") {
    return chatMessage("assistant", [...said(content), ...said(item["rawContent"])], details);
  }
  if (type === "function_call") {
    return chatMessage("assistant", toolCall(nameOf(name), argumentsOf(item["arguments"]), nameOf(callId)), details);
  }
  if (type === "function_call_result") {
    const result = shortened(item["output"]);
    const part = { type: "tool_call_result", name: nameOf(name), result, toolCallId: nameOf(callId) } as const;
    return chatMessage("tool", part, details);
  }
  const isResult = /_(output|result)$/.test(String(type));
  return chatMessage(isResult ? "tool" : "assistant", JSON.stringify(shortened(item)), details);
}

function said(content: unknown): Part[] {
  const parts: unknown[] = Array.isArray(content) ? content : content === undefined ? [] : [content];
  return parts.map((part) => {
    const { text: words, refusal, transcript, type } = Object(part) as Fields;
    const found = [part, words, refusal, transcript].find((each) => typeof each === "string");
    return text(typeof found === "string" ? found.toWellFormed() : `[${nameOf(type) || "part"}]`);
  });
}

/** The arguments of a call, which are JSON; anything but an object goes under "_raw". */
function argumentsOf(json: unknown): JsonObject | undefined {
  if (json === undefined || json === "") {
    return undefined;
  }
  let found: unknown = json;
  try {
    found = JSON.parse(String(json));
  } catch {
    // Not JSON: shown as it is.
  }
  const shown = shortened(found);
  return shown !== null && typeof shown === "object" && !Array.isArray(shown) ? (shown as JsonObject) : { _raw: shown };
}

/** A JSON value that the server takes, with text in place of long texts, such as images, and of invalid values. */
function shortened(value: unknown, depth = 0): JsonValue {
  if (typeof value === "string") {
    return value.length <= READABLE_CHARACTERS ? value.toWellFormed() : `[${value.length} characters]`;
  }
  if (typeof value === "number") {
    return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? value : String(value);
  }
  if (typeof value !== "object" || value === null) {
    return typeof value === "boolean" ? value : null;
  }
  if (depth >= 16) {
    return "...";
  }
  if (Array.isArray(value)) {
    return value.map((each) => shortened(each, depth + 1));
  }
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  return Object.fromEntries(entries.map(([key, each]) => [key.toWellFormed(), shortened(each, depth + 1)]));
}

/** An id or a name, or "" if the server would reject it. */
function nameOf(value: unknown): string {
  const isName = typeof value === "string" && value.length <= NAME_CHARACTERS;
  return isName && /^[^\p{C}\p{Zl}\p{Zp}]*$/u.test(value) ? value : "";
}
