// The client's methods for documents and their fragments.

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
  /** Maximum number of code points of a fragment, 100 to 8000. Undefined: the server's default. */
  readonly maxCharacters?: number | undefined;
  /** Maximum overlap of fragments, in code points. Undefined: the server's default. */
  readonly overlapCharacters?: number | undefined;
}

/** Which commands are recognised, which messages are examined, and how a message is saved. */
export interface HandleMessageOptions extends WriteOptions, SplitOptions {
  /** Item id of this message, if it is stored, so that it is not chosen. */
  readonly messageId?: string | undefined;
  /** Name in the agent's messages. Undefined or empty: any message of the assistant. */
  readonly agentName?: string | undefined;
  /** Recognised commands, in place of the server's. */
  readonly commands?: readonly string[] | undefined;
  /** Number of last messages to examine, at most 100. Undefined: the server's default. */
  readonly maxRecentMessages?: number | undefined;
  /** Labels of the document. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Metadata of the document. */
  readonly metadata?: JsonObject | undefined;
}

/** How a document is added. */
export interface AddDocumentOptions extends WriteOptions, SplitOptions {
  /** Title of the document, at most 512 bytes. */
  readonly title?: string | undefined;
  /** Where the text comes from, such as a URL or a file name. Never opened. */
  readonly source?: string | undefined;
  /** The conversation that it belongs to. */
  readonly sessionId?: string | undefined;
  /** For exact matching, as in { topic: "travel" }. Searches for fragments also match them. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** JSON values to store with the document. */
  readonly metadata?: JsonObject | undefined;
  /** When the text was created. Undefined: now. */
  readonly createTime?: TimeInput | undefined;
  /** When it expires, with its fragments. Undefined: never. */
  readonly expireTime?: TimeInput | undefined;
  /** Milliseconds until it expires, in place of `expireTime`. */
  readonly ttlMs?: number | undefined;
  /** Id of the document. Undefined or empty: the server makes one. */
  readonly id?: string | undefined;
  /** Replace the document with this id, if there is one. */
  readonly replace?: boolean | undefined;
  /** Write only if this is the document's version; 0: only if there is none. Only with `replace`. */
  readonly expectedVersion?: number | undefined;
}

/** Which parts of a document are fetched. */
export interface GetDocumentOptions extends CallOptions {
  /** Also fetch its fragments. */
  readonly includeFragments?: boolean | undefined;
  /** Number of fragments to fetch at a time. Undefined: 100. */
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
  /** Reverse the order. */
  readonly newestFirst?: boolean | undefined;
  /** Number to fetch at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** How a document is removed. */
export interface DeleteDocumentOptions extends WriteOptions {
  /** Remove it only if this is the document's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
  /** Keep what was made only from the document or its fragments. */
  readonly keepDerived?: boolean | undefined;
}

/** How fragments are searched. */
export interface SearchFragmentsOptions extends CallOptions, DocumentFilter {
  /** Maximum number of fragments. Undefined: 5. -1: all. */
  readonly limit?: number | undefined;
  /** Only fragments of these documents, at most 100. Undefined or empty: of any. */
  readonly documentIds?: readonly string[] | undefined;
  /** Only results that score at least this. */
  readonly minScore?: number | undefined;
  /** How the query is matched. Undefined: by words and vectors together. */
  readonly mode?: RetrieveMode | undefined;
  /** Maximum estimated tokens of all texts together. Undefined: no limit. */
  readonly maxTokens?: number | undefined;
  /** Explain the score of each result. */
  readonly explain?: boolean | undefined;
  /** Number of results to fetch at a time. Undefined: as many as fit in a response. */
  readonly pageSize?: number | undefined;
}

/** Methods for documents of the client's namespace: kept whole, searched by their fragments. */
export abstract class KnowledgeMethods extends Bound {
  /**
   * Saves the agent's latest message of a conversation as a document if a text is a command to save.
   *
   * @param sessionId - the conversation, or room, of the message
   * @param text - the message that may be a command, such as "save this"; it is not stored
   * @throws MemoryServiceError - the error's `metadata.feedback` is a message for the user
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
   * Splits a text and stores it with its fragments, all or nothing.
   *
   * @param text - text of the document, at most 1 MiB
   * @returns the document without its text
   * @throws AlreadyExistsError - a document with this id exists, and `replace` is not set
   * @throws ConflictError - the expected version is not the document's, which is in `metadata.current_version`
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
   * Returns a document with its text and, if requested, all its fragments.
   *
   * @throws NotFoundError - the namespace has no document with this id
   * @throws InvalidArgumentError - the document was replaced while its fragments were fetched
   *   (INVALID_PAGE_TOKEN): call again
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
   * Removes a document and all its fragments, and what was made only from these.
   *
   * @throws NotFoundError - the namespace has no document with this id
   * @throws ConflictError - the document's version is not `expectedVersion`
   */
  async deleteDocument(id: string, options: DeleteDocumentOptions = {}): Promise<RemovedDocument> {
    const request = {
      namespace: this.boundTo,
      id,
      expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
      keepDerived: options.keepDerived ?? false,
      requestId: requestIdOf(options),
    };
    const response = await this.transport.unary(method.deleteDocument, request, options);
    return {
      fragmentCount: Number(response.removedFragmentCount),
      revision: Number(response.revision),
      derivedCount: Number(response.derivedCount),
    };
  }

  /**
   * Returns the fragments that match a text best, best first.
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
