// What the memory keeps: items.

import type { Degradation } from "./degradation.js";
import type { JsonObject } from "./json.js";
import type { Content } from "./messages.js";
import type { Time, TimeInput } from "./times.js";

/** An embedding to send: 1 to 4096 finite numbers, in an array of any kind. */
export type Vector = ArrayLike<number>;

/**
 * Which service an item is of, and what it is there: "plain" ones are added by `add`, `batchAdd` and
 * `importItems`, the others by the methods of their services. "unspecified" is a kind that this client does
 * not know.
 */
export type ItemKind =
  | "plain"
  | "message"
  | "response"
  | "reflection"
  | "user_memory"
  | "document"
  | "fragment"
  | "unspecified";

/** An item to be written. A `MemoryItem` is one too; what only the server sets is not sent. */
export interface NewItem {
  /** What is remembered; a string stands for plain text. */
  readonly content?: Content | string | undefined;
  /** Names the item inside its namespace, 1 to 128 bytes. Empty: the server makes an id. */
  readonly id?: string | undefined;
  /** The conversation that the item belongs to. Empty: none. */
  readonly sessionId?: string | undefined;
  /** When it happened. Undefined: now. */
  readonly createTime?: TimeInput | undefined;
  /** When the item ceases to exist. Undefined: never. */
  readonly expireTime?: TimeInput | undefined;
  /** Another way to give `expireTime`: milliseconds from now. */
  readonly ttlMs?: number | undefined;
  /** For exact matching, as in `{ topic: "travel" }`; at most 64. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** JSON values to keep with the item, at most 16 KiB. */
  readonly metadata?: JsonObject | undefined;
  /** The content's vector. Undefined: the server embeds the text. */
  readonly embedding?: Vector | undefined;
  /** 0 to 1, for searches that weigh it. Undefined: not said, which counts as 0.5. */
  readonly importance?: number | undefined;
}

/** An item to be imported. One that `export` returned keeps its kind. */
export interface ImportedItem extends NewItem {
  /** Which service the item is of. Undefined: it is plain. */
  readonly kind?: ItemKind | undefined;
  /** What the service of its kind keeps with it, as `export` returned it. */
  readonly facetJson?: string | undefined;
}

/** One thing remembered. */
export interface MemoryItem {
  /** What is remembered. Undefined only where a newer server sends what this client does not know. */
  readonly content?: Content | undefined;
  /** Names the item inside its namespace. */
  readonly id: string;
  /** The conversation that the item belongs to. Empty: none. */
  readonly sessionId: string;
  /** When it happened. */
  readonly createTime?: Time | undefined;
  /** When the item was last written. */
  readonly updateTime?: Time | undefined;
  /** When the item ceases to exist. Undefined: never. */
  readonly expireTime?: Time | undefined;
  /** For exact matching. */
  readonly labels: Readonly<Record<string, string>>;
  /** JSON values kept with the item. */
  readonly metadata: JsonObject;
  /** The content's vector, only where it was asked for. */
  readonly embedding?: readonly number[] | undefined;
  /** 0 to 1, for searches that weigh it. Undefined: not said, which counts as 0.5. */
  readonly importance?: number | undefined;
  /** Revision of the namespace at which the item was last written. */
  readonly revision: number;
  /** Which service the item is of. */
  readonly kind: ItemKind;
  /** What its service keeps with it, as JSON; `export` alone returns it. Empty: nothing. */
  readonly facetJson: string;
  /** The content as readable text. */
  readonly text: string;
  /** Name or else role of the one who spoke, name of the tool; empty for text and data. */
  readonly speaker: string;
  /** What the server could not do when this client wrote the item, such as embedding its text. */
  readonly degraded: readonly Degradation[];
}
