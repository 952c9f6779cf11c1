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

/**
 * Where the content of an item comes from. "unspecified": it is not known; in an item to be written, what the
 * content tells: a user's message comes from a "user", an assistant's from an "agent", a result from a "tool".
 */
export type SourceKind =
  | "unspecified"
  | "user"
  | "agent"
  | "tool"
  | "web"
  | "document"
  | "derived"
  | "import";

/**
 * Who wrote a version of an item, out of what, and how far it is trusted. A writer may say `source`,
 * `sourceUri`, `parentIds`, `model`, and a `trust` that only lowers. The rest is set by the server, and kept by
 * `importItems` where the caller administers it.
 */
export interface Provenance {
  /** The name of the credential that it was written with. Empty or undefined: it had none. */
  readonly writer?: string | undefined;
  /** The credential. Empty or undefined: there was none. */
  readonly credentialId?: string | undefined;
  /** Where the content comes from. */
  readonly source?: SourceKind | undefined;
  /** Where the content was found, such as the address of a page, at most 2 KiB. */
  readonly sourceUri?: string | undefined;
  /** Items of the same namespace that it was made of, at most 100. */
  readonly parentIds?: readonly string[] | undefined;
  /** What made it out of its parents, such as "openai:gpt-5". */
  readonly model?: string | undefined;
  /** 0 to 1. Undefined when written: it is not lowered. The server always tells it. */
  readonly trust?: number | undefined;
  /** When the version was written, by the server's clock. */
  readonly writeTime?: TimeInput | undefined;
}

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
  /** Where it comes from, and how far it is trusted. Undefined: nothing is said. */
  readonly provenance?: Provenance | undefined;
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
  /**
   * Who wrote it, out of what, and how far it is trusted. Undefined: nobody with a name wrote it and nothing was
   * said, so that it is trusted.
   */
  readonly provenance?: Provenance | undefined;
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
