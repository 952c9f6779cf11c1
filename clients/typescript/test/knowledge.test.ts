// Documents and their fragments over a real server.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { AlreadyExistsError, chatMessage, ConflictError, MemoryClient, NotFoundError } from "../src/index.js";
import { all } from "./peer-adapters.js";
import { Server, skip } from "./server.js";

/** 40 sentences, with characters that JavaScript counts as two. */
const TEXT = Array.from({ length: 40 }, (_, number) => `Sentence ${number} is about tea 🍵 and trains.`).join(" ");

describe("knowledge", { skip, timeout: 120_000 }, () => {
  let server: Server;
  let client: MemoryClient;
  let count = 0;

  /** Returns the client bound to an unused namespace. */
  const fresh = () => client.namespace(`fresh-${count++}`);

  before(async () => {
    server = await Server.start();
    client = new MemoryClient(server.address);
  });

  after(async () => {
    client.close();
    await server.remove();
  });

  test("a document is fetched with all its fragments, whatever the pages", async () => {
    const library = fresh();
    const added = await library.addDocument(TEXT, {
      id: "tea",
      title: "On tea",
      source: "tea.txt",
      sessionId: "s",
      labels: { topic: "tea" },
      metadata: { pages: 3 },
      createTime: "2026-05-01T12:00:00.123456Z",
      expireTime: "2999-01-01T00:00:00Z",
      maxCharacters: 100,
      overlapCharacters: 10,
    });
    assert.equal(added.text, "");
    assert.equal(added.expireTime, "2999-01-01T00:00:00.000000Z");
    assert.equal(added.sizeBytes, Buffer.byteLength(TEXT));
    assert.ok(added.fragmentCount > 10);
    const document = await library.getDocument("tea", { includeFragments: true, pageSize: 3 });
    assert.equal(document.text, TEXT);
    assert.equal(document.title, "On tea");
    assert.equal(document.namespaceRevision, added.namespaceRevision);
    assert.ok(added.namespaceRevision > added.revision);
    assert.deepEqual(document.fragments.map(({ index }) => index), [...Array(added.fragmentCount).keys()]);
    const points = [...TEXT];
    const bytes = Buffer.from(TEXT);
    for (const { text, startOffset, endOffset, startByte, endByte } of document.fragments) {
      assert.equal(points.slice(startOffset, endOffset).join(""), text);
      assert.equal(bytes.subarray(startByte, endByte).toString(), text);
    }
    assert.deepEqual((await library.getDocument("tea")).fragments, []);
  });

  test("a document is replaced only where that is asked for", async () => {
    const library = fresh();
    await library.addDocument("the first text", { id: "d" });
    await assert.rejects(library.addDocument("another", { id: "d" }), AlreadyExistsError);
    const stale = library.addDocument("another", { id: "d", replace: true, expectedVersion: 7 });
    await assert.rejects(stale, ConflictError);
    const second = await library.addDocument("another", { id: "d", replace: true, expectedVersion: 1 });
    assert.equal(second.version, 2);
    const removed = await library.deleteDocument("d", { expectedVersion: 2 });
    assert.deepEqual(removed, { fragmentCount: 1, derivedCount: 0, revision: removed.revision });
    await assert.rejects(library.getDocument("d"), NotFoundError);
  });

  test("lists and searches go over all pages", async () => {
    const library = fresh();
    let revision = 0;
    for (const id of ["a", "b", "c", "d", "e"]) {
      const text = `What is to be known about trains, by ${id}`;
      ({ namespaceRevision: revision } = await library.addDocument(text, { id, labels: { by: id } }));
    }
    const documents = await all(library.listDocuments({ pageSize: 2 }));
    assert.deepEqual(documents.map(({ id }) => id), ["a", "b", "c", "d", "e"]);
    assert.match(documents[0]!.preview, /^What is/);
    const [last] = await all(library.listDocuments({ newestFirst: true, pageSize: 1 }));
    assert.equal(last?.id, "e");
    const found = await library.searchFragments("trains", { limit: -1, pageSize: 2 });
    assert.equal(new Set(found.map(({ fragment }) => fragment.documentId)).size, 5);
    const among = await library.searchFragments("trains", { documentIds: ["b", "c"], labels: { by: "c" } });
    assert.deepEqual(among.map(({ document }) => document.id), ["c"]);
    assert.equal(among.revision, revision);
  });

  test("a command saves what the agent said last", async () => {
    const room = fresh();
    await room.add(chatMessage("assistant", "Trains to Paris leave at nine."), { sessionId: "room" });
    const none = await room.handleMessage("room", "Thanks!");
    assert.equal(none.outcome, "not_a_command");
    assert.equal(none.document, undefined);
    const saved = await room.handleMessage("room", "save this", { labels: { by: "command" } });
    assert.equal(saved.outcome, "saved");
    assert.equal(saved.command, "save this");
    assert.notEqual(saved.feedback, "");
    assert.equal(saved.message?.speaker, "assistant");
    assert.equal(saved.document?.text, "Trains to Paris leave at nine.");
    assert.equal(saved.document?.fragments.length, saved.document?.fragmentCount);
    assert.equal(saved.document?.sourceItemId, saved.message?.id);
    assert.equal((await room.handleMessage("room", "save this")).outcome, "already_saved");
  });
});
