// Contents of items: chat messages, their parts, tool calls and tool results.

import type { JsonObject, JsonValue } from "./json.js";
import type { TimeInput } from "./times.js";

/** The author of a message. "unspecified": a role that this client does not know, which the server rejects. */
export type Role = "system" | "user" | "assistant" | "tool" | "unspecified";

/** The language model that wrote a message. */
export interface Model {
  /** Provider of the model, such as "openai". Empty: not given. */
  readonly provider?: string | undefined;
  /** Id of the model at its provider, such as "gpt-5". Empty: not given. */
  readonly id?: string | undefined;
}

/** Plain text. */
export interface Text {
  readonly type: "text";
  readonly text: string;
}

/** Structured data. */
export interface Data {
  readonly type: "data";
  readonly data: JsonObject;
}

/** A file, such as an image or audio, or a reference to one. */
export interface BinaryPart {
  readonly type: "binary";
  /** The bytes, at most 1 MiB. Empty: an empty file, or not loaded. */
  readonly content?: Uint8Array | undefined;
  /** Such as "image/png". Empty: not given. */
  readonly mimeType?: string | undefined;
  /** Name of the file. Undefined: not given. */
  readonly name?: string | undefined;
  /** URL of the file, which the server never opens. Undefined: not given. */
  readonly url?: string | undefined;
  /** Length in bytes. Negative: the content is not loaded. Undefined: not given. */
  readonly contentLength?: number | undefined;
}

/** A request to call a tool. */
export interface ToolCall {
  readonly type: "tool_call";
  /** Name of the tool. */
  readonly name: string;
  /** Arguments, JSON values by name. Undefined: not given. */
  readonly arguments?: JsonObject | undefined;
  /** Links the call to its result. Empty: none. */
  readonly toolCallId?: string | undefined;
}

/** The result of a tool call. */
export interface ToolCallResult {
  readonly type: "tool_call_result";
  /** Name of the tool. */
  readonly name?: string | undefined;
  /** Any JSON value. Undefined: not given. */
  readonly result?: JsonValue | undefined;
  /** Id of the call that it answers. Empty: none. */
  readonly toolCallId?: string | undefined;
  /** Whether the tool failed; then the result describes the failure. */
  readonly isError?: boolean | undefined;
}

/** One piece of a message. */
export type Part = Text | Data | BinaryPart | ToolCall | ToolCallResult;

/** A message of a conversation with all its parts. */
export interface ChatMessage {
  readonly type: "chat_message";
  /** Role of the author. */
  readonly role: Role;
  /** The pieces, in order, at most 256. */
  readonly parts: readonly Part[];
  /** Name of the author, such as "Ada". Undefined: not given. */
  readonly name?: string | undefined;
  /** The writer's id for the message. Empty: none. */
  readonly messageId?: string | undefined;
  /** Model that wrote the message. Undefined: none, or unknown. */
  readonly model?: Model | undefined;
  /** The message's own time, from the server always as text. Undefined: none. */
  readonly createTime?: TimeInput | undefined;
}

/** The content of an item; `type` distinguishes the variants. */
export type Content = Text | Data | ChatMessage | ToolCallResult;

/** The fields of a message except its role and its parts. */
export type MessageDetails = Omit<ChatMessage, "type" | "role" | "parts">;

/** The fields of a tool's result except name and result. */
export type ResultDetails = Omit<ToolCallResult, "type" | "name" | "result">;

/**
 * Makes a chat message, as in `chatMessage("user", "I like tea", { name: "Ada" })`. A string, here and in the
 * list of parts, stands for a text part.
 */
export function chatMessage(
  role: Role,
  parts: string | Part | readonly (string | Part)[],
  details: MessageDetails = {},
): ChatMessage {
  const list = typeof parts === "string" || "type" in parts ? [parts] : parts;
  const whole = list.map((part) => (typeof part === "string" ? text(part) : part));
  return { ...details, type: "chat_message", role, parts: whole };
}

/** Makes the result of the tool `name`; `result` is any JSON value. */
export function toolCallResult(name: string, result: JsonValue, details: ResultDetails = {}): ToolCallResult {
  return { ...details, type: "tool_call_result", name, result };
}

/** Makes a call of the tool `name`. */
export function toolCall(name: string, args?: JsonObject, toolCallId = ""): ToolCall {
  return { type: "tool_call", name, arguments: args, toolCallId };
}

/** Makes plain text. */
export function text(value: string): Text {
  return { type: "text", text: value };
}

/** Makes structured data. */
export function data(value: JsonObject): Data {
  return { type: "data", data: value };
}

/**
 * Returns an item's content or a message's part as readable text.
 *
 * Text is unchanged, data becomes compact JSON, a tool call looks like `search({"q":"tea"})`, a file like
 * `[image/png cat.png]`. For a message it is the text of all parts, each on its own lines.
 */
export function readableText(content: Content | Part | undefined): string {
  switch (content?.type) {
    case undefined:
      return "";
    case "text":
      return content.text;
    case "data":
      return JSON.stringify(content.data);
    case "chat_message":
      return content.parts.map(readableText).filter(Boolean).join("\n");
    case "tool_call":
      return `${content.name}(${isEmpty(content.arguments) ? "" : JSON.stringify(content.arguments)})`;
    case "tool_call_result": {
      const { name, result = null } = content;
      const shown = typeof result === "string" ? result : JSON.stringify(result);
      return name ? `${name}: ${shown}` : shown;
    }
    case "binary":
      return `[${[content.mimeType || "file", content.name, content.url].filter(Boolean).join(" ")}]`;
  }
}

function isEmpty(data: JsonObject | undefined): boolean {
  return data === undefined || Object.keys(data).length === 0;
}
