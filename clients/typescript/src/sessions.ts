// The client's methods for sessions.

import { Bound } from "./bound.js";
import { SessionService } from "./gen/memory_service/v1/session_pb.js";
import type { JsonObject } from "./json.js";
import type { CallOptions, WriteOptions } from "./options.js";
import { deletedIn } from "./removed.js";
import { given, requestIdOf, withToken } from "./requests.js";
import type { FetchedSession, Session, WrittenSession } from "./sessions-model.js";
import { sessionTo, writtenSessionTo } from "./sessions-model.js";
import { int32From, int64From, objectFrom } from "./values.js";

const method = SessionService.method;

/** Which sessions are listed. */
export interface ListSessionsOptions extends CallOptions {
  /** Only sessions whose id begins with it. */
  readonly prefix?: string | undefined;
  /** Only sessions that have all these labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Number to fetch at a time. Undefined: 100. */
  readonly pageSize?: number | undefined;
}

/** The fields of a session to change; undefined ones stay as they are. */
export interface SessionChanges {
  /** The new title. Empty: none. */
  readonly title?: string | undefined;
  /** The new labels of the session itself, in place of all labels. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** The new metadata, in place of all metadata. */
  readonly metadata?: JsonObject | undefined;
}

/** When a session is changed. */
export interface UpdateSessionOptions extends WriteOptions {
  /** Change it only if this is its version; 0: only if none of the fields was ever set. */
  readonly expectedVersion?: number | undefined;
  /** Create the session if no item names it. */
  readonly allowMissing?: boolean | undefined;
}

/** How a session is deleted. */
export interface DeleteSessionOptions extends WriteOptions {
  /** Keep what was made only from its items. */
  readonly keepDerived?: boolean | undefined;
  /** Called at the end with the number of further items that were removed because they were made only from these. */
  readonly onDerived?: ((count: number) => void) | undefined;
}

/** The part of a session to copy, and where to. */
export interface ForkSessionOptions extends WriteOptions {
  /** Id of the new session, which must not exist. Undefined or empty: the server makes one. */
  readonly newSessionId?: string | undefined;
  /** The last item to copy. Undefined or empty: the last one. */
  readonly untilItemId?: string | undefined;
  /** Copy only items that were added at or before this revision. Undefined: all. */
  readonly untilRevision?: number | undefined;
}

/** Methods for the sessions of the client's namespace: its conversations. */
export abstract class SessionMethods extends Bound {
  /** Yields the sessions, the one with the latest activity first. */
  async *listSessions(options: ListSessionsOptions = {}): AsyncGenerator<Session, void, undefined> {
    const request = {
      namespace: this.boundTo,
      prefix: options.prefix ?? "",
      labels: options.labels ?? {},
      pageSize: int32From(options.pageSize ?? 0, "pageSize"),
    };
    for await (const page of this.transport.pages(method.listSessions, withToken(request), options)) {
      yield* page.sessions.map(sessionTo);
    }
  }

  /**
   * Returns a session.
   *
   * @throws NotFoundError - the namespace has no session with this id
   */
  async getSession(sessionId: string, options: CallOptions = {}): Promise<FetchedSession> {
    const request = { namespace: this.boundTo, sessionId };
    const response = await this.transport.unary(method.getSession, request, options);
    return { ...sessionTo(response.session), namespaceRevision: Number(response.revision) };
  }

  /**
   * Changes the title, labels or metadata of a session.
   *
   * @throws NotFoundError - the namespace has no session with this id, and `allowMissing` is not set
   * @throws ConflictError - the session's version is not `expectedVersion`
   */
  async updateSession(
    sessionId: string,
    changes: SessionChanges,
    options: UpdateSessionOptions = {},
  ): Promise<WrittenSession> {
    const { title, labels, metadata } = changes;
    const paths = Object.entries({ title, labels, metadata }).filter(([, value]) => value !== undefined);
    const request = {
      namespace: this.boundTo,
      session: {
        sessionId,
        title: title ?? "",
        labels: labels ?? {},
        metadata: given(metadata, objectFrom, "changes.metadata"),
      },
      updateMask: { paths: paths.map(([name]) => name) },
      expectedVersion: given(options.expectedVersion, int64From, "expectedVersion"),
      allowMissing: options.allowMissing ?? false,
      requestId: requestIdOf(options),
    };
    return writtenSessionTo(await this.transport.unary(method.updateSession, request, options));
  }

  /**
   * Removes a session with all its items and what was made only from them. Returns the number of items, without the
   * latter; a session that does not exist has none.
   *
   * The server removes up to 10,000 items per call, so several calls may be made: if one fails, the items of the
   * earlier ones stay removed. Items that are added after the first call are kept. `requestId` is that of the first
   * call.
   */
  async deleteSession(sessionId: string, options: DeleteSessionOptions = {}): Promise<number> {
    const { keepDerived = false } = options;
    const request = (pageToken: string) => {
      const requestId = requestIdOf(pageToken === "" ? options : {});
      return { namespace: this.boundTo, sessionId, keepDerived, pageToken, requestId };
    };
    return deletedIn(this.transport.pages(method.deleteSession, request, options), options);
  }

  /**
   * Copies a session of at most 1000 items, or its beginning, to a new one, all or nothing, and returns the new
   * one. The copies have new ids; later changes of one session do not affect the other.
   *
   * @throws NotFoundError - the namespace has no session, or the session no item, with this id
   * @throws AlreadyExistsError - there is a session with the new id
   * @throws LimitExceededError - there is too much to copy
   */
  async forkSession(sessionId: string, options: ForkSessionOptions = {}): Promise<WrittenSession> {
    const request = {
      namespace: this.boundTo,
      sessionId,
      newSessionId: options.newSessionId ?? "",
      untilItemId: options.untilItemId ?? "",
      untilRevision: given(options.untilRevision, int64From, "untilRevision"),
      requestId: requestIdOf(options),
    };
    return writtenSessionTo(await this.transport.unary(method.forkSession, request, options));
  }
}
