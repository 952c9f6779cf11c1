// The client's methods for versions of items and states.

import { Bound } from "./bound.js";
import { itemTo } from "./convert.js";
import type { ItemVersion as ProtoItemVersion } from "./gen/memory_service/v1/memory_pb.js";
import { MemoryService } from "./gen/memory_service/v1/memory_pb.js";
import type { StateVersion as ProtoStateVersion } from "./gen/memory_service/v1/state_pb.js";
import { StateService, VersionKind as Kinds } from "./gen/memory_service/v1/state_pb.js";
import type { MemoryItem } from "./items.js";
import type { CallOptions } from "./options.js";
import { withToken } from "./requests.js";
import type { StateEntry } from "./state-entries.js";
import { entryTo } from "./state-entries.js";
import type { Time } from "./times.js";
import { enumTo, int32From, int64From, optionalTimeTo } from "./values.js";

/** What became of a version, or how it was removed; "unspecified" is a kind of a newer server. */
export type VersionKind = "unspecified" | "current" | "replaced" | "redacted" | "deleted" | "expired";

/** What versions of items and states have in common. */
export interface Version {
  /** Revision of the namespace at which it was written or removed. */
  readonly revision: number;
  /** What became of it. */
  readonly kind: VersionKind;
  /** When it was written or deleted. Undefined: not recorded. */
  readonly time?: Time | undefined;
  /** Name of the credential that wrote or deleted it. Empty: none, or not recorded. */
  readonly writer: string;
  /** Id of that credential. */
  readonly credentialId: string;
}

/** A version of an item, or its removal. */
export interface ItemVersion extends Version {
  /** The item in this version. Undefined: redacted or removed. */
  readonly item?: MemoryItem | undefined;
}

/** A version of a state, or its removal. */
export interface StateVersion extends Version {
  /** Version of the key. 0: a removal. */
  readonly version: number;
  /** The entry in this version. Undefined: redacted or removed. */
  readonly entry?: StateEntry | undefined;
}

/** How versions are listed. */
export interface ListVersionsOptions extends CallOptions {
  /** Number of versions to fetch at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** Methods for the kept versions of items and states in the client's namespace. */
export abstract class VersionMethods extends Bound {
  /**
   * Yields the versions and removals of an item, newest first, page by page. Replaced versions are kept for 30
   * days, unless the server has another setting; a deletion removes all.
   *
   * @throws NotFoundError - there is no such item, and there was none
   */
  async *listItemVersions(
    id: string,
    options: ListVersionsOptions = {},
  ): AsyncGenerator<ItemVersion, void, undefined> {
    const request = withToken({ namespace: this.boundTo, id, pageSize: pageSizeOf(options) });
    for await (const page of this.transport.pages(MemoryService.method.listItemVersions, request, options)) {
      yield* page.versions.map(itemVersionTo);
    }
  }

  /**
   * Removes the content of a replaced version of an item.
   *
   * @returns the namespace's revision
   * @throws NotFoundError - there is no such item or version
   * @throws FailedPreconditionError - it is the current version
   */
  async redactVersion(id: string, revision: number, options: CallOptions = {}): Promise<number> {
    const request = { namespace: this.boundTo, id, revision: int64From(revision, "revision") };
    const response = await this.transport.unary(MemoryService.method.redactVersion, request, options);
    return Number(response.revision);
  }

  /**
   * Yields the versions and removals of a key, newest first, page by page.
   *
   * @throws NotFoundError - there is no such key, and there was none
   */
  async *listStateVersions(
    key: string,
    options: ListVersionsOptions = {},
  ): AsyncGenerator<StateVersion, void, undefined> {
    const request = withToken({ namespace: this.boundTo, key, pageSize: pageSizeOf(options) });
    for await (const page of this.transport.pages(StateService.method.listStateVersions, request, options)) {
      yield* page.versions.map(stateVersionTo);
    }
  }

  /**
   * Removes the value of a replaced version of a key.
   *
   * @returns the namespace's revision
   * @throws NotFoundError - there is no such key or version
   * @throws FailedPreconditionError - it is the current version
   */
  async redactStateVersion(key: string, revision: number, options: CallOptions = {}): Promise<number> {
    const request = { namespace: this.boundTo, key, revision: int64From(revision, "revision") };
    const response = await this.transport.unary(StateService.method.redactStateVersion, request, options);
    return Number(response.revision);
  }
}

function pageSizeOf(options: ListVersionsOptions): number {
  return int32From(options.pageSize ?? 0, "pageSize");
}

function versionTo(proto: ProtoItemVersion | ProtoStateVersion): Version {
  return {
    revision: Number(proto.revision),
    kind: enumTo<VersionKind>(Kinds, proto.kind),
    time: optionalTimeTo(proto.time),
    writer: proto.writer,
    credentialId: proto.credentialId,
  };
}

function itemVersionTo(proto: ProtoItemVersion): ItemVersion {
  return { ...versionTo(proto), item: proto.item && itemTo(proto.item) };
}

function stateVersionTo(proto: ProtoStateVersion): StateVersion {
  return { ...versionTo(proto), version: Number(proto.version), entry: proto.entry && entryTo(proto.entry) };
}
