// Documents and their fragments, as plain values.

import { create } from "@bufbuild/protobuf";

import { itemTo } from "./convert.js";
import type { Degradation } from "./degradation.js";
import { degradedTo } from "./degradation.js";
import type { Contribution } from "./found.js";
import { explanationTo } from "./found.js";
import type {
  AddDocumentResponse,
  Document as ProtoDocument,
  Fragment as ProtoFragment,
  FragmentResult as ProtoResult,
  HandleMessageResponse,
} from "./gen/memory_service/v1/knowledge_pb.js";
import {
  DocumentSchema,
  FragmentSchema,
  HandleMessageOutcome as Outcomes,
} from "./gen/memory_service/v1/knowledge_pb.js";
import type { MemoryItem, Provenance } from "./items.js";
import type { JsonObject } from "./json.js";
import { provenanceTo } from "./provenance.js";
import type { Time } from "./times.js";
import { enumTo, objectTo, optionalTimeTo } from "./values.js";

/**
 * The outcome of `handleMessage`.
 *
 * - `"not_a_command"`: the message is not a command. Nothing was written, and there is no feedback.
 * - `"saved"`: the chosen message was saved.
 * - `"already_saved"`: the chosen message had already been saved, as `document`.
 * - `"no_message"`: the agent has no message with text among the last ones. Nothing was written.
 * - `"invalid_state"`: the chosen message is itself a command to save. Nothing was written.
 * - `"unspecified"`: an outcome that this client does not know.
 */
export type HandleMessageOutcome =
  | "not_a_command"
  | "saved"
  | "already_saved"
  | "no_message"
  | "invalid_state"
  | "unspecified";

/** A piece of a document's text. Neighbours may overlap. */
export interface Fragment {
  /** Unique in its namespace. A new version of the document has new fragments. */
  readonly id: string;
  /** The document that it belongs to. */
  readonly documentId: string;
  /** The version of that document. */
  readonly documentVersion: number;
  /** Its index in the document, from 0. */
  readonly index: number;
  /** Exactly the document's text from `startOffset` to `endOffset`. */
  readonly text: string;
  /**
   * In Unicode code points, from 0. JavaScript counts in UTF-16 units, so in a text with characters beyond
   * U+FFFF use `[...document.text].slice(startOffset, endOffset)`.
   */
  readonly startOffset: number;
  /** The first code point after it. */
  readonly endOffset: number;
  /** In bytes of UTF-8, from 0. */
  readonly startByte: number;
  /** The first byte after it. */
  readonly endByte: number;
  /** When it was made. */
  readonly createTime?: Time | undefined;
  /** Its writer and trust. Undefined: written without a credential, and so fully trusted. */
  readonly provenance?: Provenance | undefined;
}

/** A text that is kept whole and searched by its fragments. */
export interface Document {
  /** Unique in its namespace. */
  readonly id: string;
  /** Empty in lists, in search results and after a write. */
  readonly text: string;
  /** Empty: none. */
  readonly title: string;
  /** Where the text comes from, such as a URL or a file name. Empty: not given. */
  readonly source: string;
  /** The message that was saved as this document. Empty: it was added by `addDocument`. */
  readonly sourceItemId: string;
  /** The conversation that it belongs to. Empty: none. */
  readonly sessionId: string;
  /** For exact matching. Searches for fragments also match them. */
  readonly labels: Readonly<Record<string, string>>;
  /** JSON values stored with it. */
  readonly metadata: JsonObject;
  /** When the text was created. */
  readonly createTime?: Time | undefined;
  /** When this version was written. */
  readonly updateTime?: Time | undefined;
  /** When it expires, with its fragments. Undefined: never. */
  readonly expireTime?: Time | undefined;
  /** Number of its writes, from 1. */
  readonly version: number;
  /** Number of its fragments. */
  readonly fragmentCount: number;
  /** Size of the text in UTF-8. */
  readonly sizeBytes: number;
  /** The beginning of the text. Only in lists and search results. */
  readonly preview: string;
  /** Revision of the namespace at which this version was written. */
  readonly revision: number;
  /** Its writer, sources and trust. Undefined: written without a credential, and so fully trusted. */
  readonly provenance?: Provenance | undefined;
}

/** A document that this client wrote, without its text. */
export interface AddedDocument extends Document {
  /** What the server could not do, such as embedding its fragments. Empty: it did everything. */
  readonly degraded: readonly Degradation[];
  /** Revision of the namespace after the write of the document and its fragments. */
  readonly namespaceRevision: number;
}

/** A document with its text and its fragments. */
export interface WholeDocument extends Document {
  /** In order. From `getDocument`, empty unless requested. */
  readonly fragments: readonly Fragment[];
}

/** A document as `getDocument` returns it. */
export interface FetchedDocument extends WholeDocument {
  /** Revision of the namespace that the answer reflects. */
  readonly namespaceRevision: number;
}

/** The result of `handleMessage`. */
export interface HandledMessage {
  /** The outcome. */
  readonly outcome: HandleMessageOutcome;
  /** A message for the user. Empty: the message is not a command. */
  readonly feedback: string;
  /** The recognised command. Empty: none. */
  readonly command: string;
  /** The chosen message. Undefined: there is none. */
  readonly message?: MemoryItem | undefined;
  /** The document that the message is saved as, with text and fragments. Undefined: it is not saved. */
  readonly document?: WholeDocument | undefined;
  /** Revision of the namespace that the answer reflects; after the write, if there was one. */
  readonly revision: number;
  /** What the server could not do, such as embedding the fragments. Empty: it did everything. */
  readonly degraded: readonly Degradation[];
}

/** The result of deleting a document. */
export interface RemovedDocument {
  /** Number of removed fragments. */
  readonly fragmentCount: number;
  /** Revision of the namespace afterwards. */
  readonly revision: number;
  /** Number of further items that were removed because they were made only from these. */
  readonly derivedCount: number;
}

/** One fragment found. */
export interface FragmentResult {
  /** The fragment. */
  readonly fragment: Fragment;
  /** The document that it belongs to, without its text. */
  readonly document: Document;
  /** Higher is better. */
  readonly score: number;
  /** Shares that add up to the score. Empty without `explain`. */
  readonly explanation: readonly Contribution[];
}

/** @internal */
export function fragmentTo(fragment: ProtoFragment | undefined): Fragment {
  const proto = fragment ?? create(FragmentSchema);
  return {
    id: proto.id,
    documentId: proto.documentId,
    documentVersion: Number(proto.documentVersion),
    index: proto.index,
    text: proto.text,
    startOffset: proto.startOffset,
    endOffset: proto.endOffset,
    startByte: proto.startByte,
    endByte: proto.endByte,
    createTime: optionalTimeTo(proto.createTime),
    provenance: provenanceTo(proto.provenance),
  };
}

/** @internal */
export function documentTo(document: ProtoDocument | undefined): Document {
  const proto = document ?? create(DocumentSchema);
  return {
    id: proto.id,
    text: proto.text,
    title: proto.title,
    source: proto.source,
    sourceItemId: proto.sourceItemId,
    sessionId: proto.sessionId,
    labels: proto.labels,
    metadata: objectTo(proto.metadata),
    createTime: optionalTimeTo(proto.createTime),
    updateTime: optionalTimeTo(proto.updateTime),
    expireTime: optionalTimeTo(proto.expireTime),
    version: Number(proto.version),
    fragmentCount: proto.fragmentCount,
    sizeBytes: Number(proto.sizeBytes),
    preview: proto.preview,
    revision: Number(proto.revision),
    provenance: provenanceTo(proto.provenance),
  };
}

/** @internal */
export function addedTo({ document, degraded, revision }: AddDocumentResponse): AddedDocument {
  return {
    ...documentTo(document),
    degraded: degradedTo(degraded),
    namespaceRevision: Number(revision),
  };
}

/** @internal */
export function handledTo(response: HandleMessageResponse): HandledMessage {
  const fragments = response.fragments.map(fragmentTo);
  return {
    outcome: enumTo(Outcomes, response.outcome),
    feedback: response.feedback,
    command: response.command,
    message: response.message && itemTo(response.message),
    document: response.document && { ...documentTo(response.document), fragments },
    revision: Number(response.revision),
    degraded: degradedTo(response.degraded),
  };
}

/** @internal */
export function fragmentResultTo({ fragment, document, score, explanation }: ProtoResult): FragmentResult {
  return {
    fragment: fragmentTo(fragment),
    document: documentTo(document),
    score,
    explanation: explanationTo(explanation),
  };
}
