// Items, which hold what is remembered.

import type { Degradation } from "./degradation.js";
import type { JsonObject } from "./json.js";
import type { Content } from "./messages.js";
import type { Time, TimeInput } from "./times.js";

/** An embedding to send: 1 to 4096 finite numbers, in an array of any kind. */
export type Vector = ArrayLike<number>;

/**
 * The service that an item belongs to, and its kind there: `add`, `batchAdd` and `importItems` add "plain"
 * ones, the methods of the services the others. "unspecified" is a kind that this client does not know.
 */
export type ItemKind =
  | "plain"
  | "message"
  | "response"
  | "reflection"
  | "user_memory"
  | "document"
  | "fragment"
  | "session"
  | "file"
  | "file_fragment"
  | "unspecified";

/**
 * Where the content of an item comes from. "unspecified": unknown, or in an item to be written derived from the
 * content: a user's message comes from a "user", an assistant's from an "agent", a result from a "tool".
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
 * The writer, the sources and the trust of a version of an item. A writer may set `source`, `sourceUri`,
 * `parentIds`, `model`, and `trust`, but only to lower it. The server sets the rest, and keeps it in imports
 * by its administrators.
 */
export interface Provenance {
  /** Name of the credential that it was written with. Empty or undefined: none. */
  readonly writer?: string | undefined;
  /** Id of that credential. Empty or undefined: none. */
  readonly credentialId?: string | undefined;
  /** Where the content comes from. */
  readonly source?: SourceKind | undefined;
  /** Where the content was found, such as the URL of a page, at most 2 KiB. */
  readonly sourceUri?: string | undefined;
  /** Items of the same namespace that it was derived from, at most 100. */
  readonly parentIds?: readonly string[] | undefined;
  /** The model that derived it from its parents, such as "openai:gpt-5". */
  readonly model?: string | undefined;
  /** 0 to 1. In an item to be written, undefined: not lowered. Never undefined from the server. */
  readonly trust?: number | undefined;
  /** When the version was written, by the server's clock. */
  readonly writeTime?: TimeInput | undefined;
}

/** An item to be written. A `MemoryItem` is one too; fields that only the server sets are not sent. */
export interface NewItem {
  /** The content; a string stands for plain text. */
  readonly content?: Content | string | undefined;
  /** Unique in its namespace, 1 to 128 bytes. Empty: the server makes one. */
  readonly id?: string | undefined;
  /** The conversation that the item belongs to. Empty: none. */
  readonly sessionId?: string | undefined;
  /** When it happened. Undefined: now. */
  readonly createTime?: TimeInput | undefined;
  /** When the item expires. Undefined: never. */
  readonly expireTime?: TimeInput | undefined;
  /** Milliseconds until it expires, in place of `expireTime`. */
  readonly ttlMs?: number | undefined;
  /** For exact matching, as in `{ topic: "travel" }`; at most 64. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** JSON values to store with the item, at most 64 KiB, 32 levels deep. */
  readonly metadata?: JsonObject | undefined;
  /** The content's vector. Undefined: the server embeds the text. */
  readonly embedding?: Vector | undefined;
  /** 0 to 1, for searches that weigh it. Undefined: counts as 0.5. */
  readonly importance?: number | undefined;
  /**
   * The text to search in place of the content, by words and by vectors. Empty: searches do not find the item.
   * Undefined: the content.
   */
  readonly index?: string | undefined;
  /** Where the content comes from, and how far it is trusted. Undefined: not given. */
  readonly provenance?: Provenance | undefined;
}

/** An item to be imported. One that `export` returned keeps its kind. */
export interface ImportedItem extends NewItem {
  /** The service that the item belongs to. Undefined: it is plain. */
  readonly kind?: ItemKind | undefined;
  /** Data of the item's service, as returned by `export`. */
  readonly facetJson?: string | undefined;
}

/** One thing remembered. */
export interface MemoryItem {
  /** The content. Undefined only if a newer server sends a kind that this client does not know. */
  readonly content?: Content | undefined;
  /** Unique in its namespace. */
  readonly id: string;
  /** The conversation that the item belongs to. Empty: none. */
  readonly sessionId: string;
  /** When it happened. */
  readonly createTime?: Time | undefined;
  /** When the item was last written. */
  readonly updateTime?: Time | undefined;
  /** When the item expires. Undefined: never. */
  readonly expireTime?: Time | undefined;
  /** For exact matching. */
  readonly labels: Readonly<Record<string, string>>;
  /** JSON values stored with the item. */
  readonly metadata: JsonObject;
  /** The content's vector, only if requested. */
  readonly embedding?: readonly number[] | undefined;
  /** 0 to 1, for searches that weigh it. Undefined: counts as 0.5. */
  readonly importance?: number | undefined;
  /** The text that searches see in place of the content. Empty: they do not find the item. Undefined: the content. */
  readonly index?: string | undefined;
  /**
   * Its writer, sources and trust. Undefined: written without a credential and without any provenance, and so
   * fully trusted.
   */
  readonly provenance?: Provenance | undefined;
  /** Revision of the namespace at which the item was last written. */
  readonly revision: number;
  /** The service that the item belongs to. */
  readonly kind: ItemKind;
  /** Data of the item's service, as JSON; only `export` returns it. Empty: none. */
  readonly facetJson: string;
  /** The content as readable text. */
  readonly text: string;
  /** The name or else the role of a message's author, or a tool's name; empty for text and data. */
  readonly speaker: string;
  /** What the server could not do when this client wrote the item, such as embedding its text. */
  readonly degraded: readonly Degradation[];
}
