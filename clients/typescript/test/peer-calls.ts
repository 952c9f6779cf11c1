// The calls of the corpus, each made through the adapter of its RPC.

import type { DescMethod, DescService } from "@bufbuild/protobuf";

import { AdminService } from "../src/gen/memory_service/v1/admin_pb.js";
import { FileService } from "../src/gen/memory_service/v1/file_pb.js";
import { InteractionService } from "../src/gen/memory_service/v1/interaction_pb.js";
import { KnowledgeService } from "../src/gen/memory_service/v1/knowledge_pb.js";
import { MemoryService } from "../src/gen/memory_service/v1/memory_pb.js";
import { OverseerService } from "../src/gen/memory_service/v1/overseer_pb.js";
import { SessionService } from "../src/gen/memory_service/v1/session_pb.js";
import { StateService } from "../src/gen/memory_service/v1/state_pb.js";
import { UserMemoryService } from "../src/gen/memory_service/v1/user_memory_pb.js";
import type { JsonValue, MemoryClient } from "../src/index.js";
import { InvalidArgumentError, MemoryServiceError } from "../src/index.js";
import type { Adapter } from "./peer-adapters.js";
import { FILES } from "./peer-files.js";
import { ADMIN, iterated, MEMORY, STATE } from "./peer-memory.js";
import { Inexpressible, type Native, nativeOf, parsed, written } from "./peer-messages.js";
import { INTERACTIONS, KNOWLEDGE, OVERSEER, USER_MEMORIES } from "./peer-services.js";
import { SESSIONS } from "./peer-sessions.js";

/** A call as the corpus writes it. */
export interface Call {
  readonly call: string;
  readonly request?: JsonValue;
  readonly requests?: readonly JsonValue[];
  readonly take?: number;
}

export const SERVICES: readonly (readonly [DescService, Readonly<Record<string, Adapter>>])[] = [
  [MemoryService, MEMORY],
  [StateService, STATE],
  [UserMemoryService, USER_MEMORIES],
  [InteractionService, INTERACTIONS],
  [KnowledgeService, KNOWLEDGE],
  [SessionService, SESSIONS],
  [FileService, FILES],
  [OverseerService, OVERSEER],
  [AdminService, ADMIN],
];

/** Makes a call and says what came back. */
export async function answer(client: MemoryClient, call: Call): Promise<object> {
  try {
    if (call.call === "Iterate") {
      const { namespace, by } = call.request as { namespace: string; by: string };
      return { response: await iterated(client.namespace(namespace), by) };
    }
    for (const [service, adapters] of SERVICES) {
      const method = service.methods.find(({ name }) => `${service.name}/${name}` === call.call);
      const adapter = method && adapters[method.localName];
      if (adapter) {
        return await made(client, method, adapter, call);
      }
    }
    return { inexpressible: `there is no ${call.call}` };
  } catch (error) {
    return refusal(error);
  }
}

/** Makes a call through its adapter, which takes one request or, of a client stream, the list of them. */
async function made(client: MemoryClient, method: DescMethod, adapter: Adapter, call: Call): Promise<object> {
  const bodies = call.requests ?? [call.request ?? {}];
  const requests = bodies.map((json) => requestOf(method, adapter, json));
  const [{ namespace = "", ...first } = {}] = requests;
  const isUpload = method.methodKind === "client_streaming";
  const taken = call.take === undefined ? first : { ...first, take: call.take };
  const bound = client.namespace(namespace as string);
  const native = await adapter.call(bound, (isUpload ? requests : taken) as never);
  return Array.isArray(native)
    ? { responses: native.map((response: Native) => written(method.output, response)) }
    : { response: written(method.output, native as Native) };
}

function requestOf(method: DescMethod, adapter: Adapter, json: JsonValue): Native {
  const message = parsed(method.input, json as never);
  return nativeOf(method.input, message, ["namespace", ...adapter.sent]);
}

function refusal(error: unknown): object {
  if (error instanceof InvalidArgumentError && error.reason === "") {
    return { inexpressible: `the client takes no such value: ${error.message}` };
  }
  if (error instanceof MemoryServiceError) {
    const { code, reason, field, metadata } = error;
    return { error: { code, reason, field, metadata } };
  }
  if (error instanceof Inexpressible) {
    return { inexpressible: error.message };
  }
  throw error;
}
