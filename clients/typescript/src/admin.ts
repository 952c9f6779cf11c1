// The client's methods for administration.

import { create } from "@bufbuild/protobuf";

import { Bound } from "./bound.js";
import { itemTo } from "./convert.js";
import type { Degradation } from "./degradation.js";
import { degradedTo } from "./degradation.js";
import type {
  GetInfoResponse,
  GetNamespaceStatsResponse,
  NamespaceSettings as ProtoSettings,
} from "./gen/memory_service/v1/admin_pb.js";
import {
  AdminService,
  NamespaceSettingsSchema,
  QuarantineDecision as Decisions,
} from "./gen/memory_service/v1/admin_pb.js";
import type { HealthStatus } from "./health.js";
import { healthCheck, statusOf } from "./health.js";
import type { MemoryItem } from "./items.js";
import type { CallOptions, WriteOptions } from "./options.js";
import type { Removed } from "./removed.js";
import { given, requestIdOf, withToken } from "./requests.js";
import type { Time, TimeInput } from "./times.js";
import { durationFrom, enumFrom, int32From, int64From, millisTo, optionalTimeTo, timestampFrom } from "./values.js";

const method = AdminService.method;

/** Progress of a backup. */
export interface BackupProgress {
  readonly name: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
}

/** Description of a server. */
export interface ServerInfo {
  readonly version: string;
  /** "hnsw", "memory" or "postgres". */
  readonly store: string;
  /** As "provider:model", or "none". */
  readonly embedder: string;
  /** 0: no embedder. */
  readonly embeddingDimension: number;
  /** As "provider:model", or "none". */
  readonly llm: string;
  readonly startTime?: Time | undefined;
  /** Limits in force; the unit is part of the name. */
  readonly limits: Readonly<Record<string, number>>;
  /** The running backup. Undefined: there is none, or the caller may not make backups. */
  readonly backup?: BackupProgress | undefined;
  /** As "provider:model", or "none". */
  readonly reranker: string;
  /** Name of the server that answered, of several over the same records. Empty: an earlier release. */
  readonly serverName: string;
}

/** A namespace in a list. */
export interface NamespaceSummary {
  readonly namespace: string;
  readonly itemCount: number;
  readonly revision: number;
  readonly createTime?: Time | undefined;
  /** Undefined: none was ever made. */
  readonly settings?: NamespaceSettings | undefined;
}

/** Settings of a namespace. */
export interface NamespaceSettings {
  /** IANA name of the time zone of its users. Empty: UTC. */
  readonly timeZone: string;
  /** Milliseconds until items of conversations expire that are added without an expiry. Undefined: never. */
  readonly defaultTtlMs?: number | undefined;
  /** Number of changes of the settings. */
  readonly version: number;
}

/** Changes of settings; those that are undefined stay. */
export interface NamespaceChanges {
  /** IANA name such as "Europe/Berlin"; "": UTC. */
  readonly timeZone?: string | undefined;
  /** Milliseconds until items of conversations expire that are added without an expiry; null: never. */
  readonly defaultTtlMs?: number | null | undefined;
}

/** How settings are changed. */
export interface UpdateNamespaceOptions extends CallOptions {
  /** Write only if this is the version of the settings; 0: only if there are none. Undefined: always. */
  readonly expectedVersion?: number | undefined;
}

/** How namespaces are listed. */
export interface ListNamespacesOptions extends CallOptions {
  /** Prefix of the names. Undefined: list all. */
  readonly prefix?: string | undefined;
  /** Number of namespaces to fetch at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** Index of a namespace, which is in memory only while in use. */
export interface IndexStats {
  readonly loaded: boolean;
  /** "exact" or "hnsw"; empty: not loaded. */
  readonly kind: string;
  readonly graphCount: number;
  readonly exactCount: number;
  readonly memoryBytes: number;
  readonly efSearch: number;
}

/** Contents of a namespace. */
export interface NamespaceStats {
  readonly namespace: string;
  readonly revision: number;
  readonly itemCount: number;
  readonly stateCount: number;
  readonly embeddedCount: number;
  /** 0: no vectors yet. */
  readonly embeddingDimension: number;
  /** The embedder's name, or "client" for vectors that clients provided. */
  readonly embeddingModel: string;
  readonly createTime?: Time | undefined;
  readonly index: IndexStats;
  /** Number of items waiting to be embedded, because the embedder did not answer or after `reembed`. */
  readonly pendingCount: number;
  /** Undefined: none was ever made. */
  readonly settings?: NamespaceSettings | undefined;
  /** Undefined without `includeUsage`. */
  readonly usage?: NamespaceUsage | undefined;
}

/** How much a namespace is used. */
export interface NamespaceUsage {
  /** Bytes of items and states, without vectors, indexes and history. */
  readonly byteCount: number;
  /** Calls to this server that named the namespace, including this one. */
  readonly callCount: number;
  /** When the server began to count them. */
  readonly callCountStartTime?: Time | undefined;
}

/** How a namespace is described. */
export interface NamespaceStatsOptions extends CallOptions {
  /** Also return its bytes and calls. The server may read the whole namespace for it. */
  readonly includeUsage?: boolean | undefined;
}

/** Selects the writes to undo: by `writer`, `credentialId` or both, or `anyWriter`. */
export interface UndoOptions extends WriteOptions {
  /** Undo writes since this time, by the server's clock. */
  readonly since: TimeInput;
  /** Only writes with this writer in their `Provenance`. Undefined: of any. */
  readonly writer?: string | undefined;
  /** Only writes with this credential. Undefined: with any. */
  readonly credentialId?: string | undefined;
  /** Undo the writes of all writers, also of those without a name. */
  readonly anyWriter?: boolean | undefined;
  /** Return what would be done, and change nothing. */
  readonly dryRun?: boolean | undefined;
}

/** The result of undoing writes, or of a dry run. */
export interface UndoneWrites {
  /** Items and states that were removed. */
  readonly removedCount: number;
  /** Items and states that got back their previous version. */
  readonly restoredCount: number;
  /** Changes that cannot be undone, such as deletions. */
  readonly unrestorableCount: number;
  /** Ids of their items and keys of their states, at most 100. */
  readonly unrestorableIds: readonly string[];
  /** Revision of the namespace afterwards. */
  readonly revision: number;
}

/** How a namespace is moved to the server's embedder. */
export interface ReembedOptions extends CallOptions {
  /** Also replace vectors that clients provided. Otherwise a namespace with such vectors is refused. */
  readonly replaceClientVectors?: boolean | undefined;
}

/** A namespace's move to the server's embedder. */
export interface Reembedding {
  /** Items waiting to be embedded. 0: there was nothing to do. */
  readonly pendingCount: number;
  /** The namespace's embedder from now on. */
  readonly embeddingModel: string;
  /** Revision of the namespace. */
  readonly revision: number;
}

/** How writes in quarantine are listed. */
export interface ListQuarantinedOptions extends CallOptions {
  /** Number to fetch at a time. Undefined: chosen by the server. */
  readonly pageSize?: number | undefined;
}

/** A write that the server's write policy put into quarantine: all items of one call. */
export interface QuarantinedWrite {
  readonly id: string;
  /** The policy's reason. */
  readonly reason: string;
  /** When it was received. */
  readonly createTime?: Time | undefined;
  /** When it is removed without a review. */
  readonly expireTime?: Time | undefined;
  /** The items as they would be written, with their provenance and without embeddings. */
  readonly items: readonly MemoryItem[];
}

/** The decision on a write in quarantine: apply it, or delete it for good. */
export type QuarantineDecision = "release" | "delete";

/** The result of a review. */
export interface ReviewedWrite {
  /** Items that were written; 0 if the write was deleted. */
  readonly itemCount: number;
  /** Revision of the namespace afterwards. */
  readonly revision: number;
  /** What the server could not do, such as embedding the texts. */
  readonly degraded: readonly Degradation[];
}

/** What a backup wrote. */
export interface BackupSummary {
  readonly name: string;
  readonly sizeBytes: number;
  readonly checksum: string;
  readonly namespaceCount: number;
  readonly itemCount: number;
  /** How long it took, in milliseconds. */
  readonly durationMs: number;
}

/** Methods that describe and maintain a server and its namespaces. */
export abstract class AdminMethods extends Bound {
  /** Returns the server's version, store, embedder, limits and more. */
  async info(options: CallOptions = {}): Promise<ServerInfo> {
    return infoTo(await this.transport.unary(method.getInfo, {}, options));
  }

  /** Yields the namespaces in the order of their names, page by page. */
  async *listNamespaces(
    options: ListNamespacesOptions = {},
  ): AsyncGenerator<NamespaceSummary, void, undefined> {
    const { prefix = "", pageSize = 0 } = options;
    const request = withToken({ prefix, pageSize: int32From(pageSize, "pageSize") });
    for await (const page of this.transport.pages(method.listNamespaces, request, options)) {
      for (const { namespace, itemCount, revision, createTime, settings } of page.namespaces) {
        yield {
          namespace,
          itemCount: Number(itemCount),
          revision: Number(revision),
          createTime: optionalTimeTo(createTime),
          settings: settings && settingsTo(settings),
        };
      }
    }
  }

  /**
   * Returns the contents of the client's namespace in numbers.
   *
   * @throws NotFoundError - nothing was ever written to it
   */
  async namespaceStats(options: NamespaceStatsOptions = {}): Promise<NamespaceStats> {
    const request = { namespace: this.boundTo, includeUsage: options.includeUsage ?? false };
    return statsTo(await this.transport.unary(method.getNamespaceStats, request, options));
  }

  /**
   * Changes settings of the client's namespace, which is created if it does not exist.
   *
   * @throws ConflictError - the settings are at another version than `expectedVersion`
   */
  async updateNamespace(
    changes: NamespaceChanges,
    options: UpdateNamespaceOptions = {},
  ): Promise<NamespaceSettings> {
    const { timeZone, defaultTtlMs } = changes;
    const paths = [];
    if (timeZone !== undefined) {
      paths.push("time_zone");
    }
    if (defaultTtlMs !== undefined) {
      paths.push("default_ttl");
    }
    const request = {
      namespace: this.boundTo,
      timeZone: timeZone ?? "",
      defaultTtl: given(defaultTtlMs ?? undefined, durationFrom, "changes.defaultTtlMs"),
      updateMask: { paths },
      expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
    };
    const { settings } = await this.transport.unary(method.updateNamespace, request, options);
    return settingsTo(settings ?? create(NamespaceSettingsSchema));
  }

  /**
   * Removes the client's namespace with all its contents; the next write creates a new one. Never retried.
   *
   * @throws NotFoundError - there is no such namespace
   */
  async deleteNamespace(options: CallOptions = {}): Promise<Removed> {
    const request = { namespace: this.boundTo };
    const response = await this.transport.unary(method.deleteNamespace, request, options);
    const { removedItemCount, removedStateCount } = response;
    return { itemCount: Number(removedItemCount), stateCount: Number(removedStateCount), revision: 0 };
  }

  /**
   * Moves the client's namespace to the server's embedder: its items are embedded again in the background, and
   * until then each is found by its words alone. It resolves when the move is recorded on disk, not when it is
   * done: `namespaceStats` has the `pendingCount`. The move continues after a restart. A namespace that already
   * uses this embedder is left unchanged.
   *
   * @throws NotFoundError - nothing was ever written to the namespace
   * @throws FailedPreconditionError - the server has no embedder, or clients provided the vectors and
   *   `replaceClientVectors` is not set
   * @throws UnavailableError - the embedder does not answer; nothing is changed
   */
  async reembed(options: ReembedOptions = {}): Promise<Reembedding> {
    const { replaceClientVectors = false } = options;
    const request = { namespace: this.boundTo, replaceClientVectors };
    const response = await this.transport.unary(method.reembed, request, options);
    const { pendingCount, embeddingModel, revision } = response;
    return { pendingCount: Number(pendingCount), embeddingModel, revision: Number(revision) };
  }

  /**
   * Undoes the writes of a writer to the client's namespace since a time: added items and states are removed,
   * replaced ones get back their previous version. Deletions cannot be undone. Repeat an interrupted call to
   * continue it.
   *
   * @throws InvalidArgumentError - the writer or the time is missing
   */
  async undoWrites(options: UndoOptions): Promise<UndoneWrites> {
    const { writer = "", credentialId = "", anyWriter = false, since, dryRun = false } = options;
    const request = {
      namespace: this.boundTo,
      writer,
      credentialId,
      anyWriter,
      since: given(since, timestampFrom, "since"),
      dryRun,
      requestId: dryRun ? (options.requestId ?? "") : requestIdOf(options),
    };
    const response = await this.transport.unary(method.undoWrites, request, options);
    const { removedCount, restoredCount, unrestorableCount, unrestorableIds, revision } = response;
    return {
      removedCount: Number(removedCount),
      restoredCount: Number(restoredCount),
      unrestorableCount: Number(unrestorableCount),
      unrestorableIds,
      revision: Number(revision),
    };
  }

  /** Yields the writes to the client's namespace that are in quarantine, oldest first, page by page. */
  async *listQuarantined(
    options: ListQuarantinedOptions = {},
  ): AsyncGenerator<QuarantinedWrite, void, undefined> {
    const pageSize = int32From(options.pageSize ?? 0, "pageSize");
    const request = withToken({ namespace: this.boundTo, pageSize });
    for await (const page of this.transport.pages(method.listQuarantined, request, options)) {
      for (const { id, reason, createTime, expireTime, items } of page.writes) {
        yield {
          id,
          reason,
          createTime: optionalTimeTo(createTime),
          expireTime: optionalTimeTo(expireTime),
          items: items.map((item) => itemTo(item)),
        };
      }
    }
  }

  /**
   * Releases or deletes a write to the client's namespace that is in quarantine. A released write is applied as
   * if it were made now, with its original provenance. Never retried.
   *
   * @throws NotFoundError - the write is not in quarantine, or no longer there
   * @throws AlreadyExistsError - an item with its id was written meanwhile; the write stays in quarantine
   * @throws ConflictError - the items it changes were changed meanwhile; the write stays in quarantine
   */
  async reviewQuarantined(
    id: string,
    decision: QuarantineDecision,
    options: CallOptions = {},
  ): Promise<ReviewedWrite> {
    const request = {
      namespace: this.boundTo,
      id,
      decision: enumFrom<Decisions>(Decisions, decision, "decision"),
    };
    const response = await this.transport.unary(method.reviewQuarantined, request, options);
    const { itemCount, revision, degraded } = response;
    return { itemCount, revision: Number(revision), degraded: degradedTo(degraded) };
  }

  /**
   * Moves the log into the database and saves the indexes. Acknowledged writes are on disk without it; it makes
   * the next start of the server faster. It has no time limit unless `timeoutMs` is given.
   *
   * @returns how long that took, in milliseconds
   */
  async flush(options: CallOptions = {}): Promise<number> {
    const { signal, timeoutMs = Infinity } = options;
    const { duration } = await this.transport.unary(method.flush, {}, { signal, timeoutMs });
    return millisTo(duration);
  }

  /**
   * Writes a consistent copy of all records to the server's backup folder. Never retried, and without a time
   * limit unless `timeoutMs` is given.
   *
   * @param name - name of the backup, which must not exist; empty: made from the current time
   * @throws UnsupportedError - the server's store has nothing on disk
   */
  async backup(name = "", options: CallOptions = {}): Promise<BackupSummary> {
    const { signal, timeoutMs = Infinity } = options;
    const response = await this.transport.unary(method.backup, { name }, { signal, timeoutMs });
    return {
      name: response.name,
      sizeBytes: Number(response.sizeBytes),
      checksum: response.checksum,
      namespaceCount: Number(response.namespaceCount),
      itemCount: Number(response.itemCount),
      durationMs: millisTo(response.duration),
    };
  }

  /**
   * Returns whether the server, or one of its services, takes calls.
   *
   * @throws NotFoundError - the server has no such service
   */
  async health(service = "", options: CallOptions = {}): Promise<HealthStatus> {
    return statusOf(await this.transport.unary(healthCheck, { service }, options));
  }
}

function infoTo(response: GetInfoResponse): ServerInfo {
  const { version, store, embedder, embeddingDimension, llm, backup } = response;
  return {
    version,
    store,
    embedder,
    embeddingDimension,
    llm,
    startTime: optionalTimeTo(response.startTime),
    limits: Object.fromEntries(Object.entries(response.limits).map(([name, limit]) => [name, Number(limit)])),
    backup: backup && {
      name: backup.name,
      doneBytes: Number(backup.doneBytes),
      totalBytes: Number(backup.totalBytes),
    },
    reranker: response.reranker,
    serverName: response.serverName,
  };
}

function statsTo(response: GetNamespaceStatsResponse): NamespaceStats {
  const { namespace, embeddingDimension, embeddingModel, index } = response;
  return {
    namespace,
    revision: Number(response.revision),
    itemCount: Number(response.itemCount),
    stateCount: Number(response.stateCount),
    embeddedCount: Number(response.embeddedCount),
    embeddingDimension,
    embeddingModel,
    createTime: optionalTimeTo(response.createTime),
    index: {
      loaded: index?.loaded ?? false,
      kind: index?.kind ?? "",
      graphCount: Number(index?.graphCount ?? 0),
      exactCount: Number(index?.exactCount ?? 0),
      memoryBytes: Number(index?.memoryBytes ?? 0),
      efSearch: index?.efSearch ?? 0,
    },
    pendingCount: Number(response.pendingCount),
    settings: response.settings && settingsTo(response.settings),
    usage: response.usage && {
      byteCount: Number(response.usage.byteCount),
      callCount: Number(response.usage.callCount),
      callCountStartTime: optionalTimeTo(response.usage.callCountStartTime),
    },
  };
}

function settingsTo(settings: ProtoSettings): NamespaceSettings {
  return {
    timeZone: settings.timeZone,
    defaultTtlMs: settings.defaultTtl && millisTo(settings.defaultTtl),
    version: Number(settings.version),
  };
}
