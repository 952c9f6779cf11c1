// Sessions, as plain values.

import { create } from "@bufbuild/protobuf";

import type { Degradation } from "./degradation.js";
import { degradedTo } from "./degradation.js";
import type {
  ForkSessionResponse,
  Session as ProtoSession,
  UpdateSessionResponse,
} from "./gen/memory_service/v1/session_pb.js";
import { SessionSchema } from "./gen/memory_service/v1/session_pb.js";
import type { JsonObject } from "./json.js";
import type { Time } from "./times.js";
import { objectTo, optionalTimeTo } from "./values.js";

/** A conversation within a namespace. It exists as soon as an item names it. */
export interface Session {
  /** Unique in its namespace. */
  readonly sessionId: string;
  /** Empty: none. */
  readonly title: string;
  /** Labels of the session itself. */
  readonly labels: Readonly<Record<string, string>>;
  /** JSON values that are stored with it. */
  readonly metadata: JsonObject;
  /** How many items it has that have not expired. */
  readonly itemCount: number;
  /** The earliest `createTime` of an item. Undefined: there are no items. */
  readonly firstTime: Time | undefined;
  /** The latest `createTime` of an item. Undefined: there are no items. */
  readonly lastTime: Time | undefined;
  /** Changes with each update of title, labels or metadata. 0: none of them was ever set. */
  readonly version: number;
  /** When one of them was last set. Undefined: never. */
  readonly updateTime: Time | undefined;
  /** What it was copied from. Undefined: it is no copy. */
  readonly forkedFrom: SessionOrigin | undefined;
  /** Names of those who spoke in its newest 1000 items, at most 100; only from `getSession`, else empty. */
  readonly participants: readonly string[];
}

/** What a session was copied from. It may have been changed or deleted since. */
export interface SessionOrigin {
  /** The session. */
  readonly sessionId: string;
  /** The last item that was copied. Empty: none was. */
  readonly untilItemId: string;
  /** Revision of the namespace at which the items were read. */
  readonly revision: number;
}

/** A session that was read. */
export interface FetchedSession extends Session {
  /** Revision of the namespace that the answer reflects. */
  readonly namespaceRevision: number;
}

/** A session that was written. */
export interface WrittenSession extends FetchedSession {
  /** What the server could not do. Empty: it did everything. */
  readonly degraded: readonly Degradation[];
}

/** @internal */
export function sessionTo(session: ProtoSession | undefined): Session {
  const proto = session ?? create(SessionSchema);
  const origin = proto.forkedFrom;
  return {
    sessionId: proto.sessionId,
    title: proto.title,
    labels: proto.labels,
    metadata: objectTo(proto.metadata),
    itemCount: Number(proto.itemCount),
    firstTime: optionalTimeTo(proto.firstTime),
    lastTime: optionalTimeTo(proto.lastTime),
    version: Number(proto.version),
    updateTime: optionalTimeTo(proto.updateTime),
    participants: proto.participants,
    forkedFrom: origin && {
      sessionId: origin.sessionId,
      untilItemId: origin.untilItemId,
      revision: Number(origin.revision),
    },
  };
}

/** @internal */
export function writtenSessionTo(response: UpdateSessionResponse | ForkSessionResponse): WrittenSession {
  return {
    ...sessionTo(response.session),
    degraded: degradedTo(response.degraded),
    namespaceRevision: Number(response.revision),
  };
}
