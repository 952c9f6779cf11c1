// The client's methods for state.

import { Bound } from "./bound.js";
import { StateService } from "./gen/memory_service/v1/state_pb.js";
import type { JsonValue } from "./json.js";
import type { CallOptions, WriteOptions } from "./options.js";
import type { Removed } from "./removed.js";
import { given, requestIdOf, withToken } from "./requests.js";
import type { StateEntry, ValueOptions } from "./state-entries.js";
import { entryTo, savedFrom } from "./state-entries.js";
import { int32From, int64From } from "./values.js";

/** How a value is saved. */
export interface SaveStateOptions extends WriteOptions, ValueOptions {}

/** Which version of a value is loaded. */
export interface LoadStateOptions extends CallOptions {
  /** Return the version that was written at this revision. Undefined: the current one. */
  readonly revision?: number | undefined;
}

/** How a key is removed. */
export interface DeleteStateOptions extends WriteOptions {
  /** Remove it only if this is the key's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
}

/** How a key is renamed. */
export interface RenameStateOptions extends WriteOptions {
  /** Rename it only if this is the key's version. Undefined: always. */
  readonly expectedVersion?: number | undefined;
}

/** How entries are searched. */
export interface SearchStateOptions extends CallOptions {
  /** Number of entries to fetch at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** How keys are listed. */
export interface ListStateKeysOptions extends SearchStateOptions {
  /** Only keys that begin with this. Undefined: all. */
  readonly prefix?: string | undefined;
  /** Add the beginning of each value. */
  readonly includePreview?: boolean | undefined;
}

/** Methods for named JSON values with versions in the client's namespace. */
export abstract class StateMethods extends Bound {
  /**
   * Writes a value under a key, creating the key or raising its version.
   *
   * @param key - 1 to 512 bytes
   * @param value - any JSON value, at most 1 MiB
   * @returns the entry as it is now, without its value
   * @throws ConflictError - the expected version is not the key's, which is in `metadata.current_version`
   */
  async saveState(key: string, value: JsonValue, options: SaveStateOptions = {}): Promise<StateEntry> {
    const request = {
      namespace: this.boundTo,
      ...savedFrom(key, value, options),
      requestId: requestIdOf(options),
    };
    const { entry } = await this.transport.unary(StateService.method.saveState, request, options);
    return entryTo(entry);
  }

  /**
   * Returns the entry of a key, with its value.
   *
   * @throws NotFoundError - there is no such key, or the version is not kept
   */
  async loadState(key: string, options: LoadStateOptions = {}): Promise<StateEntry> {
    const request = { namespace: this.boundTo, key, revision: int64From(options.revision ?? 0, "revision") };
    const { entry } = await this.transport.unary(StateService.method.loadState, request, options);
    return entryTo(entry);
  }

  /** Yields all entries, or those whose key has a prefix, without their values, ordered by key, page by page. */
  async *listStateKeys(options: ListStateKeysOptions = {}): AsyncGenerator<StateEntry, void, undefined> {
    const { prefix = "", includePreview = false, pageSize = 0 } = options;
    const size = int32From(pageSize, "pageSize");
    const request = { namespace: this.boundTo, prefix, includePreview, pageSize: size };
    const pages = this.transport.pages(StateService.method.listStateKeys, withToken(request), options);
    for await (const page of pages) {
      yield* page.entries.map(entryTo);
    }
  }

  /** Yields the entries whose whole key matches a glob such as "plan/*", with values, ordered by key. */
  async *searchState(
    pattern: string,
    options: SearchStateOptions = {},
  ): AsyncGenerator<StateEntry, void, undefined> {
    const { pageSize = 0 } = options;
    const request = { namespace: this.boundTo, pattern, pageSize: int32From(pageSize, "pageSize") };
    const pages = this.transport.pages(StateService.method.searchState, withToken(request), options);
    for await (const page of pages) {
      yield* page.entries.map(entryTo);
    }
  }

  /**
   * Removes a key.
   *
   * @returns the namespace's revision
   * @throws NotFoundError - there is no such key
   * @throws ConflictError - the key's version is not `expectedVersion`
   */
  async deleteState(key: string, options: DeleteStateOptions = {}): Promise<number> {
    const request = {
      namespace: this.boundTo,
      key,
      expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
      requestId: requestIdOf(options),
    };
    const response = await this.transport.unary(StateService.method.deleteState, request, options);
    return Number(response.revision);
  }

  /**
   * Gives a value another key; its times, description and earlier versions go along.
   *
   * @returns the entry under its new key, without its value
   * @throws NotFoundError - there is no such key
   * @throws AlreadyExistsError - the new key exists
   * @throws ConflictError - the key's version is not `expectedVersion`
   */
  async renameState(key: string, newKey: string, options: RenameStateOptions = {}): Promise<StateEntry> {
    const request = {
      namespace: this.boundTo,
      key,
      newKey,
      expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
      requestId: requestIdOf(options),
    };
    const { entry } = await this.transport.unary(StateService.method.renameState, request, options);
    return entryTo(entry);
  }

  /** Removes every key of the namespace, but not its items. */
  async clearState(options: WriteOptions = {}): Promise<Removed> {
    const request = { namespace: this.boundTo, requestId: requestIdOf(options) };
    const response = await this.transport.unary(StateService.method.clearState, request, options);
    const { removedCount, revision } = response;
    return { itemCount: 0, stateCount: Number(removedCount), revision: Number(revision) };
  }
}
