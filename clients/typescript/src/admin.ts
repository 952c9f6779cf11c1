// The methods of a client that look after a server and its namespaces.

import { Bound } from "./bound.js";
import { itemTo } from "./convert.js";
import type { Degradation } from "./degradation.js";
import { degradedTo } from "./degradation.js";
import type { GetInfoResponse, GetNamespaceStatsResponse } from "./gen/memory_service/v1/admin_pb.js";
import { AdminService, QuarantineDecision as Decisions } from "./gen/memory_service/v1/admin_pb.js";
import type { HealthStatus } from "./health.js";
import { healthCheck, statusOf } from "./health.js";
import type { MemoryItem } from "./items.js";
import type { CallOptions, WriteOptions } from "./options.js";
import type { Removed } from "./removed.js";
import { given, requestIdOf, withToken } from "./requests.js";
import type { Time, TimeInput } from "./times.js";
import { enumFrom, int32From, millisTo, optionalTimeTo, timestampFrom } from "./values.js";

const method = AdminService.method;

/** How far a backup is. */
export interface BackupProgress {
  readonly name: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
}

/** What a server is. */
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
  /** The backup that is under way. Undefined: none is, or the caller may not make one. */
  readonly backup?: BackupProgress | undefined;
  /** As "provider:model", or "none". */
  readonly reranker: string;
  /** Of the server that answered, of several over the same records. Empty: it is of an earlier release. */
  readonly serverName: string;
}

/** A namespace in a list. */
export interface NamespaceSummary {
  readonly namespace: string;
  readonly itemCount: number;
  readonly revision: number;
  readonly createTime?: Time | undefined;
}

/** How namespaces are listed. */
export interface ListNamespacesOptions extends CallOptions {
  /** What the names begin with. Undefined: all. */
  readonly prefix?: string | undefined;
  /** How many namespaces are fetched at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** The index of a namespace, in memory only while it is in use. */
export interface IndexStats {
  readonly loaded: boolean;
  /** "exact" or "hnsw"; empty: not loaded. */
  readonly kind: string;
  readonly graphCount: number;
  readonly exactCount: number;
  readonly memoryBytes: number;
  readonly efSearch: number;
}

/** What a namespace holds. */
export interface NamespaceStats {
  readonly namespace: string;
  readonly revision: number;
  readonly itemCount: number;
  readonly stateCount: number;
  readonly embeddedCount: number;
  /** 0: no vectors yet. */
  readonly embeddingDimension: number;
  /** Embedder's name, or "client" for vectors of the clients' own. */
  readonly embeddingModel: string;
  readonly createTime?: Time | undefined;
  readonly index: IndexStats;
  /** How many of the items wait to be embedded, after their embedder did not answer or after `reembed`. */
  readonly pendingCount: number;
}

/** Whose writes are taken back: `writer`, `credentialId` or both, or `anyWriter`. */
export interface UndoOptions extends WriteOptions {
  /** The time from which on they wrote, by the server's clock. */
  readonly since: TimeInput;
  /** Whose writes, as `Provenance` says. Undefined: of any name. */
  readonly writer?: string | undefined;
  /** With which credential. Undefined: with any. */
  readonly credentialId?: string | undefined;
  /** What everybody wrote, also without a name. */
  readonly anyWriter?: boolean | undefined;
  /** Tell what would be done, and do nothing. */
  readonly dryRun?: boolean | undefined;
}

/** What was taken back, or would be. */
export interface UndoneWrites {
  /** Items and states that were removed. */
  readonly removedCount: number;
  /** Items and states that got back the version before. */
  readonly restoredCount: number;
  /** What cannot be undone, such as deletions. */
  readonly unrestorableCount: number;
  /** Items, and keys of states, of which that is so; at most 100. */
  readonly unrestorableIds: readonly string[];
  /** Revision of the namespace afterwards. */
  readonly revision: number;
}

/** How a namespace is moved to the server's embedder. */
export interface ReembedOptions extends CallOptions {
  /** Agree that vectors which clients brought are replaced, too. Else a namespace of such is refused. */
  readonly replaceClientVectors?: boolean | undefined;
}

/** A namespace on its way to the server's embedder. */
export interface Reembedding {
  /** How many items wait to be embedded. 0: there was nothing to do. */
  readonly pendingCount: number;
  /** What the namespace is of now. */
  readonly embeddingModel: string;
  /** Revision of the namespace. */
  readonly revision: number;
}

/** How writes in quarantine are listed. */
export interface ListQuarantinedOptions extends CallOptions {
  /** How many are fetched at a time. Undefined: as the server likes. */
  readonly pageSize?: number | undefined;
}

/** A write that the server's write policy put aside. What was one call is one write. */
export interface QuarantinedWrite {
  readonly id: string;
  /** What the policy says. */
  readonly reason: string;
  /** When it came. */
  readonly createTime?: Time | undefined;
  /** From then on it is removed without a review. */
  readonly expireTime?: Time | undefined;
  /** The items as they would be written, with their provenance and without embeddings. */
  readonly items: readonly MemoryItem[];
}

/** What becomes of a write in quarantine: it takes place, or it is forgotten for good. */
export type QuarantineDecision = "release" | "delete";

/** What became of a write that was in quarantine. */
export interface ReviewedWrite {
  /** Items that were written; 0 where it was deleted. */
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

/** What a server is and holds, and the care of its data. */
export abstract class AdminMethods extends Bound {
  /** Returns what the server is: version, store, embedder, limits. */
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
      for (const { namespace, itemCount, revision, createTime } of page.namespaces) {
        yield {
          namespace,
          itemCount: Number(itemCount),
          revision: Number(revision),
          createTime: optionalTimeTo(createTime),
        };
      }
    }
  }

  /**
   * Returns what the client's namespace holds.
   *
   * @throws NotFoundError - nothing was ever written to it
   */
  async namespaceStats(options: CallOptions = {}): Promise<NamespaceStats> {
    const request = { namespace: this.boundTo };
    return statsTo(await this.transport.unary(method.getNamespaceStats, request, options));
  }

  /**
   * Removes the client's namespace with all it holds; the next write begins a new one. It is tried once.
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
   * Moves the client's namespace to the server's embedder: its items are embedded anew, by and by, while it
   * serves; until its turn has come an item is found by its words alone. It resolves when the move is on disk,
   * not when it is done: `namespaceStats` has the `pendingCount`. It goes on after a restart. A namespace that is
   * of this embedder already is left alone.
   *
   * @throws NotFoundError - nothing was ever written to the namespace
   * @throws FailedPreconditionError - the server has no embedder, or the vectors are the clients' own and
   *   `replaceClientVectors` does not agree
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
   * Takes back what somebody wrote to the client's namespace since a time: items and states that they added are
   * removed, and what they replaced gets back the version before. What they deleted cannot come back. One that
   * was interrupted goes on when it is repeated.
   *
   * @throws InvalidArgumentError - it is not said whose writes
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

  /** Yields the writes of the client's namespace that are in quarantine, the oldest first, page by page. */
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
   * Releases a write of the client's namespace out of quarantine, which then takes place as if it came now, with
   * the provenance that it came with; or deletes it. It is tried once.
   *
   * @throws NotFoundError - it is not in quarantine, or no more
   * @throws AlreadyExistsError - an item of its id was written meanwhile; it stays
   * @throws ConflictError - what it changes was changed meanwhile; it stays
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
   * Moves the log into the database and saves the indexes. Acknowledged writes are on disk without it; it
   * makes the next start of the server quicker. It may take as long as it takes unless `timeoutMs` is given.
   *
   * @returns how long it took, in milliseconds
   */
  async flush(options: CallOptions = {}): Promise<number> {
    const { signal, timeoutMs = Infinity } = options;
    const { duration } = await this.transport.unary(method.flush, {}, { signal, timeoutMs });
    return millisTo(duration);
  }

  /**
   * Writes a consistent copy of all records to the server's backup folder. It is tried once, and may take as
   * long as it takes unless `timeoutMs` is given.
   *
   * @param name - of the backup; empty: made of the present time. One that exists is refused.
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
  };
}
