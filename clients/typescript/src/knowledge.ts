// The methods of a client that keep documents and search their fragments.

import { Bound } from "./bound.js";
import { modeFrom } from "./convert.js";
import type { Found } from "./found.js";
import { foundOf } from "./found.js";
import type { GetDocumentResponse } from "./gen/memory_service/v1/knowledge_pb.js";
import { KnowledgeService } from "./gen/memory_service/v1/knowledge_pb.js";
import { RetrieveMode as Modes } from "./gen/memory_service/v1/memory_pb.js";
import type { JsonObject } from "./json.js";
import type {
  AddedDocument,
  Document,
  FetchedDocument,
  Fragment,
  FragmentResult,
  HandledMessage,
  RemovedDocument,
} from "./knowledge-model.js";
import { addedTo, documentTo, fragmentResultTo, fragmentTo, handledTo } from "./knowledge-model.js";
import type { RetrieveMode } from "./memory-options.js";
import type { CallOptions, WriteOptions } from "./options.js";
import type { TrustFilter } from "./trust-filter.js";
import { trustFrom } from "./provenance.js";
import { given, requestIdOf, withToken } from "./requests.js";
import type { TimeInput } from "./times.js";
import { durationFrom, int32From, int64From, objectFrom, timestampFrom } from "./values.js";

const method = KnowledgeService.method;

/** How a text is split into fragments. */
export interface SplitOptions {
  /** The most code points of a fragment, 100 to 8000. Undefined: the server's number. */
  readonly maxCharacters?: number | undefined;
  /** The most code points that a fragment repeats of the one before. Undefined: the server's number. */
  readonly overlapCharacters?: number | undefined;
}

/** What counts as a command to save, where the message to save is looked for, and how it is saved. */
export interface HandleMessageOptions extends WriteOptions, SplitOptions {
  /** The id of the item that is this message, if it is stored: it is never chosen. */
  readonly messageId?: string | undefined;
  /** The name that the agent's messages have. Undefined or empty: any message of the assistant. */
  readonly agentName?: string | undefined;
  /** Commands that count, in place of the server's. */
  readonly commands?: readonly string[] | undefined;
  /** How many of the last messages are looked at, at most 100. Undefined: the server's number. */
  readonly maxRecentMessages?: number | undefined;
  /** For the document. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** For the document. */
  readonly metadata?: JsonObject | undefined;
}

/** How a document is added. */
export interface AddDocumentOptions extends WriteOptions, SplitOptions {
  /** Of the document, at most 512 bytes. */
  readonly title?: string | undefined;
  /** What the text comes from, such as a URL or a file's name. Never opened. */
  readonly source?: string | undefined;
  /** The conversation that it belongs to. */
  readonly sessionId?: string | undefined;
  /** For exact matching, as in { topic: "travel" }. Its fragments are found by them too. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** JSON values to keep with the document. */
  readonly metadata?: JsonObject | undefined;
  /** When the text came about. Undefined: now. */
  readonly createTime?: TimeInput | undefined;
  /** When it ceases to exist, with its fragments. Undefined: never. */
  readonly expireTime?: TimeInput | undefined;
  /** Another way to give `expireTime`: how long it lives, in milliseconds. */
  readonly ttlMs?: number | undefined;
  /** Names the document. Undefined or empty: the server makes an id. */
  readonly id?: string | undefined;
  /** Take the place of the document that has this id, if there is one. */
  readonly replace?: boolean | undefined;
  /** Only if this is the document's version; 0: only if there is none. Only with `replace`. */
  readonly expectedVersion?: number | undefined;
}

/** What is fetched of a document. */
export interface GetDocumentOptions extends CallOptions {
  /** Fetch its fragments too. */
  readonly includeFragments?: boolean | undefined;
  /** How many fragments are fetched at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** Which documents are read. */
export interface DocumentFilter extends TrustFilter {
  /** Only documents of this conversation. */
  readonly sessionId?: string | undefined;
  /** Only documents that have all these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Only documents whose `createTime` is at or after it. */
  readonly startTime?: TimeInput | undefined;
  /** Only documents whose `createTime` is before it. */
  readonly endTime?: TimeInput | undefined;
}

/** How documents are listed. */
export interface ListDocumentsOptions extends CallOptions, DocumentFilter {
  /** Turn the order round. */
  readonly newestFirst?: boolean | undefined;
  /** How many are fetched at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** How a document is removed. */
export interface DeleteDocumentOptions extends WriteOptions {
  /** Remove it only if this is the document's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
}

/** How fragments are searched. */
export interface SearchFragmentsOptions extends CallOptions, DocumentFilter {
  /** The most fragments wanted. Undefined: 5. -1: all. */
  readonly limit?: number | undefined;
  /** Only of these documents, at most 100. Undefined or empty: of any. */
  readonly documentIds?: readonly string[] | undefined;
  /** Only results that score at least this. */
  readonly minScore?: number | undefined;
  /** By what the query is answered. Undefined: words and vectors together. */
  readonly mode?: RetrieveMode | undefined;
  /** What the texts may take together, estimated. Undefined: no bound. */
  readonly maxTokens?: number | undefined;
  /** Add to each result how its score came about. */
  readonly explain?: boolean | undefined;
  /** How many results are fetched at a time. Undefined: as many as fit into a response. */
  readonly pageSize?: number | undefined;
}

/** Documents: kept whole, searched by their fragments. All in the client's namespace. */
export abstract class KnowledgeMethods extends Bound {
  /**
   * Saves the agent's latest message of a conversation as a document, if a text is a command to.
   *
   * @param sessionId - the conversation, or room, that the message was sent in
   * @param text - the message that may be a command, such as "save this"; it is not stored
   * @throws MemoryServiceError - `metadata.feedback` of the error is what to tell the user
   */
  async handleMessage(
    sessionId: string,
    text: string,
    options: HandleMessageOptions = {},
  ): Promise<HandledMessage> {
    const request = {
      namespace: this.boundTo,
      sessionId,
      text,
      messageId: options.messageId ?? "",
      agentName: options.agentName ?? "",
      commands: [...(options.commands ?? [])],
      maxRecentMessages: given(options.maxRecentMessages, int32From, "maxRecentMessages"),
      labels: options.labels ?? {},
      metadata: given(options.metadata, objectFrom, "metadata"),
      split: splitFrom(options),
      requestId: requestIdOf(options),
    };
    return handledTo(await this.transport.unary(method.handleMessage, request, options));
  }

  /**
   * Splits a text and keeps it with its fragments, all or nothing.
   *
   * @param text - of the document, at most 1 MiB
   * @returns the document without its text
   * @throws AlreadyExistsError - a document of this id exists, and `replace` is not set
   * @throws ConflictError - the document has another version; `metadata.current_version` tells which
   */
  async addDocument(text: string, options: AddDocumentOptions = {}): Promise<AddedDocument> {
    const document = {
      id: options.id ?? "",
      text,
      title: options.title ?? "",
      source: options.source ?? "",
      sessionId: options.sessionId ?? "",
      labels: options.labels ?? {},
      metadata: given(options.metadata, objectFrom, "metadata"),
      createTime: given(options.createTime, timestampFrom, "createTime"),
      expireTime: given(options.expireTime, timestampFrom, "expireTime"),
      ttl: given(options.ttlMs, durationFrom, "ttlMs"),
    };
    const request = {
      namespace: this.boundTo,
      document,
      split: splitFrom(options),
      replace: options.replace ?? false,
      expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
      requestId: requestIdOf(options),
    };
    return addedTo(await this.transport.unary(method.addDocument, request, options));
  }

  /**
   * Returns a document with its text and, if asked for, all its fragments.
   *
   * @throws NotFoundError - no document of this id is in the namespace
   * @throws InvalidArgumentError - the document was replaced while its fragments were fetched
   *   (INVALID_PAGE_TOKEN): ask again
   */
  async getDocument(id: string, options: GetDocumentOptions = {}): Promise<FetchedDocument> {
    const request = {
      namespace: this.boundTo,
      id,
      includeFragments: options.includeFragments ?? false,
      pageSize: int32From(options.pageSize ?? 0, "pageSize"),
    };
    const fragments: Fragment[] = [];
    let first: GetDocumentResponse | undefined;
    for await (const page of this.transport.pages(method.getDocument, withToken(request), options)) {
      first ??= page;
      fragments.push(...page.fragments.map(fragmentTo));
    }
    return { ...documentTo(first?.document), fragments, namespaceRevision: Number(first?.revision) };
  }

  /** Yields the documents without their texts, in the order in which they were first added. */
  async *listDocuments(options: ListDocumentsOptions = {}): AsyncGenerator<Document, void, undefined> {
    const request = {
      ...filterFields(options),
      namespace: this.boundTo,
      newestFirst: options.newestFirst ?? false,
      pageSize: int32From(options.pageSize ?? 0, "pageSize"),
    };
    for await (const page of this.transport.pages(method.listDocuments, withToken(request), options)) {
      yield* page.documents.map(documentTo);
    }
  }

  /**
   * Removes a document and all its fragments.
   *
   * @throws NotFoundError - no document of this id is in the namespace
   * @throws ConflictError - the document has another version than `expectedVersion`
   */
  async deleteDocument(id: string, options: DeleteDocumentOptions = {}): Promise<RemovedDocument> {
    const request = {
      namespace: this.boundTo,
      id,
      expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
      requestId: requestIdOf(options),
    };
    const response = await this.transport.unary(method.deleteDocument, request, options);
    return { fragmentCount: Number(response.removedFragmentCount), revision: Number(response.revision) };
  }

  /**
   * Returns the fragments that fit a text best, the best first.
   *
   * @param query - a text to find fragments for, at most 64 KiB
   */
  async searchFragments(query: string, options: SearchFragmentsOptions = {}): Promise<Found<FragmentResult>> {
    const request = {
      ...filterFields(options),
      namespace: this.boundTo,
      query,
      limit: given(options.limit, int32From, "limit"),
      documentIds: [...(options.documentIds ?? [])],
      minScore: options.minScore,
      mode: given(options.mode, modeFrom, "mode") ?? Modes.UNSPECIFIED,
      maxTokens: given(options.maxTokens, int32From, "maxTokens"),
      explain: options.explain ?? false,
      pageSize: int32From(options.pageSize ?? 0, "pageSize"),
    };
    const pages = this.transport.pages(method.searchFragments, withToken(request), options);
    return foundOf(pages, (page) => page.results.map(fragmentResultTo));
  }
}

function splitFrom({ maxCharacters, overlapCharacters }: SplitOptions) {
  if (maxCharacters === undefined && overlapCharacters === undefined) {
    return undefined;
  }
  return {
    maxCharacters: given(maxCharacters, int32From, "maxCharacters"),
    overlapCharacters: given(overlapCharacters, int32From, "overlapCharacters"),
  };
}

function filterFields(filter: DocumentFilter) {
  return {
    sessionId: filter.sessionId ?? "",
    labels: filter.labels ?? {},
    startTime: given(filter.startTime, timestampFrom, "startTime"),
    endTime: given(filter.endTime, timestampFrom, "endTime"),
    ...trustFrom(filter),
  };
}
