// Every field of every request can be said to the client, and every field of every response comes back: each
// RPC is made through the peer's adapters, with messages that have every field set, to a server that notes
// what it gets and answers likewise.

import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { createServer } from "node:http2";
import { after, before, describe, test } from "node:test";

import type { DescMessage, DescMethod, JsonObject, JsonValue, Message } from "@bufbuild/protobuf";
import { fromJson, toJson } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";

import { WriteOperationSchema } from "../src/gen/memory_service/v1/memory_pb.js";
import { MemoryClient } from "../src/index.js";
import type { Wanted } from "./filled.js";
import { filled, VARIANTS } from "./filled.js";
import { answer, SERVICES } from "./peer-calls.js";

/** What only the server sets, or what the client does itself; all else a caller can say. */
const NOT_SENT: Readonly<Record<string, readonly string[]>> = {
  MemoryItem: ["update_time", "revision"],
  StateEntry: ["version", "update_time", "size_bytes", "create_time", "preview", "revision"],
  MemorySource: ["origin", "memory_ids", "model"],
  Importance: ["base", "boosts", "reductions", "decay_factor", "current_score", "decided_by"],
  UserMemory: [
    "version",
    "status",
    "superseded_by",
    "supersedes",
    "original_content",
    "source",
    "create_time",
    "update_time",
    "revision",
    "provenance",
  ],
  Document: [
    "source_item_id",
    "update_time",
    "version",
    "fragment_count",
    "size_bytes",
    "preview",
    "revision",
    "provenance",
  ],
  OriginalMessage: ["provenance"],
  Session: ["item_count", "first_time", "last_time", "version", "update_time", "forked_from", "participants"],
};

/** What the client does not hand on: it fetches all pages, and resumes streams by itself. */
const NOT_RETURNED: Readonly<Record<string, readonly string[]>> = {
  // The server never sends a ttl, only the resulting expire_time.
  MemoryItem: ["ttl"],
  UserMemory: ["ttl"],
  Document: ["ttl"],
  // A skipped item is one without a revision, or is missing in the list.
  AddResponse: ["skipped"],
  BatchAddResponse: ["skipped_count"],
  // An iteration yields the entries of all pages.
  ListResponse: ["revision"],
  DeleteWhereResponse: ["revision"],
  ListLabelValuesResponse: ["revision"],
  ListMemoriesResponse: ["revision"],
  ListDocumentsResponse: ["revision"],
  ListSessionsResponse: ["revision"],
  ListFilesResponse: ["revision"],
  DeleteSessionResponse: ["revision"],
  WatchResponse: ["revision"],
  ExportResponse: ["revision"],
};

const WRITES_PLAIN_ITEMS = ["Add", "BatchAdd", "Update", "BatchWrite"];

/** Writes of items and entries alone: the revision after the write is that of what was written last. */
const REVISION_OF_WRITTEN = [
  "Add",
  "BatchAdd",
  "Update",
  "SaveState",
  "RenameState",
  "StoreInteraction",
  "StoreResponse",
  "StoreReflection",
];

/** Fields of a request that a caller can say. The mask of an update is made by the client. */
function sent(method: DescMethod, variant: number): Wanted {
  const isPlain = WRITES_PLAIN_ITEMS.includes(method.name);
  const isUpdate = method.name === "Update" || (method.name === "BatchWrite" && isUpdateOperation(variant));
  return (parent, { name }) => {
    const isFacet = parent === "MemoryItem" && ["kind", "facet_json"].includes(name);
    const isOwn = name === "page_token" || name === "update_mask";
    const isOfVersion = isUpdate && parent === "MemoryItem" && name === "provenance";
    return !isOwn && !isOfVersion && !NOT_SENT[parent]?.includes(name) && !(isPlain && isFacet);
  };
}

function isUpdateOperation(variant: number): boolean {
  const { fields } = WriteOperationSchema.oneofs[0]!;
  return fields[variant % fields.length]!.name === "update";
}

const returned: Wanted = (parent, { name }) => name !== "next_page_token" && !NOT_RETURNED[parent]?.includes(name);

/** A server that records requests and returns given responses. */
class Mirror {
  received: Message[] = [];
  response: JsonValue = {};
  readonly #server = createServer(connectNodeAdapter({ routes: (router) => this.#routes(router) }));

  async listen(): Promise<string> {
    await new Promise<void>((listening) => this.#server.listen(0, "127.0.0.1", listening));
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    await new Promise((closed) => this.#server.close(closed));
  }

  #routes(router: ConnectRouter): void {
    for (const [service] of SERVICES) {
      const methods = service.methods.map((method) => [method.localName, this.#handler(method)]);
      router.service(service, Object.fromEntries(methods));
    }
  }

  #handler(method: DescMethod): unknown {
    const respond = () => fromJson(method.output, this.response);
    const unary = (request: Message) => {
      this.received.push(request);
      return respond();
    };
    const many = async function* (this: Mirror, request: Message) {
      yield unary(request);
    };
    const upload = async (requests: AsyncIterable<Message>) => {
      for await (const request of requests) {
        this.received.push(request);
      }
      return respond();
    };
    return { unary, server_streaming: many, client_streaming: upload, bidi_streaming: undefined }[method.methodKind];
  }
}

function normal(desc: DescMessage, json: JsonValue): JsonValue {
  return toJson(desc, fromJson(desc, json));
}

describe("all fields", { timeout: 60_000 }, () => {
  const mirror = new Mirror();
  let client: MemoryClient;

  before(async () => {
    client = new MemoryClient(await mirror.listen());
  });

  after(async () => {
    client.close();
    await mirror.close();
  });

  for (const [service] of SERVICES) {
    for (const method of service.methods) {
      test(`${service.name}/${method.name}`, async () => {
        for (let variant = 0; variant < VARIANTS; variant++) {
          await compare(`${service.name}/${method.name}`, method, variant);
        }
      });
    }
  }

  async function compare(call: string, method: DescMethod, variant: number): Promise<void> {
    const request = filled(method.input, variant, sent(method, variant));
    const response = normal(method.output, filled(method.output, variant, returned));
    if (REVISION_OF_WRITTEN.includes(method.name)) {
      const [written] = Object.values(response as JsonObject).flat() as JsonObject[];
      (response as JsonObject)["revision"] = written!["revision"]!;
    }
    mirror.received = [];
    mirror.response = response;
    const asked = method.methodKind === "client_streaming" ? { requests: [request] } : { request };
    const isStream = method.methodKind === "server_streaming";
    const found = await answer(client, { call, ...asked, ...(method.name === "Watch" ? { take: 1 } : {}) });
    assert.deepEqual(found, isStream ? { responses: [response] } : { response });
    const [received, ...more] = mirror.received.map((each) => toJson(method.input, each) as JsonObject);
    assert.deepEqual(more, []);
    const updated = updateIn(received!);
    const mask = updated["updateMask"];
    delete updated["updateMask"];
    assert.deepEqual(received, normal(method.input, request));
    if (method.input.field["updateMask"] || updated !== received) {
      assert.deepEqual(String(mask).split(",").sort(), namesIn(updated));
    }
  }
});

/** Returns the message with the mask of an update: the request, or the operation of a batch. */
function updateIn(request: JsonObject): JsonObject {
  const [operation] = (request["operations"] ?? []) as JsonObject[];
  return (operation?.["update"] ?? request) as JsonObject;
}

/** The names that the mask of an update has to hold: those of the fields that are given, in JSON's way. */
function namesIn(request: JsonObject): string[] {
  const { namespace: _, expectedVersion: __, ...settings } = request;
  const changed = (request["item"] ?? request["memory"] ?? request["session"] ?? settings) as JsonObject;
  const id = request["session"] === undefined ? "id" : "sessionId";
  const content = ["chatMessage", "toolCallResult", "text", "data"];
  const names = Object.keys(changed).filter((name) => name !== id);
  return names.map((name) => (content.includes(name) ? "content" : name)).sort();
}
