// Adapters for sessions.

import type { SessionService } from "../src/gen/memory_service/v1/session_pb.js";
import type {
  DeleteSessionOptions,
  ForkSessionOptions,
  ListSessionsOptions,
  UpdateSessionOptions,
  WrittenSession,
} from "../src/index.js";
import type { Adapters } from "./peer-adapters.js";
import { adapter, all, changesOf, required, withDerived } from "./peer-adapters.js";
import type { Native } from "./peer-messages.js";

type Id = { sessionId?: string };

/** With what `updateSession` empties a field. */
const CLEARED = { title: "", labels: {}, metadata: {} };

function written(session: WrittenSession): object {
  return { session, degraded: session.degraded, revision: session.namespaceRevision };
}

export const SESSIONS: Adapters<typeof SessionService> = {
  listSessions: adapter<ListSessionsOptions>(["pageSize", "prefix", "labels"], async (client, options) => ({
    sessions: await all(client.listSessions(options)),
  })),
  getSession: adapter<Id>(["sessionId"], async (client, { sessionId = "" }) => {
    const session = await client.getSession(sessionId);
    return { session, revision: session.namespaceRevision };
  }),
  updateSession: adapter<UpdateSessionOptions & { session?: Native & Id; updateMask?: { paths: string[] } }>(
    ["session", "updateMask", "expectedVersion", "allowMissing", "requestId"],
    async (client, { session, updateMask, ...options }) => {
      const { sessionId = "", ...values } = required(session, "UpdateSessionRequest.session");
      return written(await client.updateSession(sessionId, changesOf(values, updateMask, CLEARED), options));
    },
  ),
  deleteSession: adapter<DeleteSessionOptions & Id>(
    ["sessionId", "keepDerived", "requestId"],
    async (client, { sessionId = "", ...options }) =>
      withDerived(async (onDerived) => ({
        deletedCount: await client.deleteSession(sessionId, { ...options, onDerived }),
      })),
  ),
  forkSession: adapter<ForkSessionOptions & Id>(
    ["sessionId", "newSessionId", "untilItemId", "untilRevision", "requestId"],
    async (client, { sessionId = "", ...options }) => written(await client.forkSession(sessionId, options)),
  ),
};
