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
 * What became of a message that might be a command to save.
 *
 * - `"not_a_command"`: it is none. Nothing was written, and there is no feedback.
 * - `"saved"`: the chosen message was saved.
 * - `"already_saved"`: the chosen message had been saved before: `document` is that one.
 * - `"no_message"`: among the last messages there is none of the agent with a text. Nothing was written.
 * - `"invalid_state"`: the chosen message is a command to save itself. Nothing was written.
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
  /** Names it inside its namespace. A new version of the document has new fragments. */
  readonly id: string;
  /** The document that it is a piece of. */
  readonly documentId: string;
  /** The version of that document. */
  readonly documentVersion: number;
  /** Its place in the document, from 0. */
  readonly index: number;
  /** That of the document from `startOffset` to `endOffset`, to the letter. */
  readonly text: string;
  /**
   * In Unicode code points, from 0. JavaScript counts strings in UTF-16 units, so of a text with characters
   * beyond U+FFFF it is `[...document.text].slice(startOffset, endOffset)` that gives the text.
   */
  readonly startOffset: number;
  /** The first code point that is not in it. */
  readonly endOffset: number;
  /** In bytes of UTF-8, from 0. */
  readonly startByte: number;
  /** The first byte that is not in it. */
  readonly endByte: number;
  /** When it was made. */
  readonly createTime?: Time | undefined;
  /** Who wrote it, and how far it is trusted. Undefined: nobody with a name wrote it, so that it is trusted. */
  readonly provenance?: Provenance | undefined;
}

/** A text that is kept whole and searched by its fragments. */
export interface Document {
  /** Names it inside its namespace. */
  readonly id: string;
  /** Empty in lists, in search results and after a write. */
  readonly text: string;
  /** Empty: none. */
  readonly title: string;
  /** What the text comes from, such as a URL or a file's name. Empty: not given. */
  readonly source: string;
  /** The message that was saved. Empty: the document was added as one. */
  readonly sourceItemId: string;
  /** The conversation that it belongs to. Empty: none. */
  readonly sessionId: string;
  /** For exact matching. Its fragments are found by them too. */
  readonly labels: Readonly<Record<string, string>>;
  /** JSON values kept with it. */
  readonly metadata: JsonObject;
  /** When the text came about. */
  readonly createTime?: Time | undefined;
  /** When this version was written. */
  readonly updateTime?: Time | undefined;
  /** When it ceases to exist, with its fragments. Undefined: never. */
  readonly expireTime?: Time | undefined;
  /** Counts its writes: 1 for the first. */
  readonly version: number;
  /** How many fragments it has. */
  readonly fragmentCount: number;
  /** Size of the text in UTF-8. */
  readonly sizeBytes: number;
  /** The beginning of the text. Only in lists and search results. */
  readonly preview: string;
  /** Revision of the namespace at which this version was written. */
  readonly revision: number;
  /**
   * Who wrote it, out of what, and how far it is trusted. Undefined: nobody with a name wrote it, so that it is
   * trusted.
   */
  readonly provenance?: Provenance | undefined;
}

/** A document that this client wrote, without its text. */
export interface AddedDocument extends Document {
  /** What the server could not do, such as embedding its fragments. Empty: nothing. */
  readonly degraded: readonly Degradation[];
  /** Revision of the namespace after the write of the document and its fragments. */
  readonly namespaceRevision: number;
}

/** A document with its text and its fragments. */
export interface WholeDocument extends Document {
  /** In their order. Of `getDocument`, empty unless they were asked for. */
  readonly fragments: readonly Fragment[];
}

/** A document as `getDocument` returns it. */
export interface FetchedDocument extends WholeDocument {
  /** Revision of the namespace that the answer reflects. */
  readonly namespaceRevision: number;
}

/** What became of a message that might be a command to save. */
export interface HandledMessage {
  /** What became of it. */
  readonly outcome: HandleMessageOutcome;
  /** What to tell the user. Empty: the message is no command. */
  readonly feedback: string;
  /** The command that was recognised. Empty: none. */
  readonly command: string;
  /** The message that was chosen. Undefined: none was. */
  readonly message?: MemoryItem | undefined;
  /** What the message is saved as, with text and fragments. Undefined: it is not saved. */
  readonly document?: WholeDocument | undefined;
  /** Revision of the namespace that the answer reflects; after the write, if there was one. */
  readonly revision: number;
  /** What the server could not do, such as embedding the fragments. Empty: nothing. */
  readonly degraded: readonly Degradation[];
}

/** What the deletion of a document removed with it. */
export interface RemovedDocument {
  /** How many fragments were removed. */
  readonly fragmentCount: number;
  /** Revision of the namespace afterwards. */
  readonly revision: number;
}

/** One fragment found. */
export interface FragmentResult {
  /** What was found. */
  readonly fragment: Fragment;
  /** What it is a piece of, without its text. */
  readonly document: Document;
  /** Higher is better. */
  readonly score: number;
  /** Shares that add up to the score. Empty unless `explain` asked for it. */
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
