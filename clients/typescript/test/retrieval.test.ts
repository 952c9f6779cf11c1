// What of a retrieval no server shows: which zeros are sent, and how pages become one.

import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { create } from "@bufbuild/protobuf";

import { MemoryItemSchema, RetrieveOptionsSchema, RetrieveResponseSchema } from "../src/gen/memory_service/v1/memory_pb.js";
import { newItemFrom } from "../src/convert.js";
import { resultsOf, retrievalFrom } from "../src/retrieval.js";

describe("a retrieval", () => {
  test("zero is sent where it does not mean the same as nothing", () => {
    const weights = { lexical: 0, recencyHalfLifeMs: 0 };
    const sent = create(RetrieveOptionsSchema, retrievalFrom("q", { maxTokens: 0, weights }));
    assert.equal(sent.maxTokens, 0);
    assert.deepEqual([sent.weights?.lexical, sent.weights?.vector], [0, undefined]);
    assert.equal(sent.weights?.recencyHalfLife?.seconds, 0n);
    const plain = create(RetrieveOptionsSchema, retrievalFrom("q", {}));
    assert.deepEqual([plain.maxTokens, plain.weights, plain.now], [undefined, undefined, undefined]);
    assert.notEqual(create(RetrieveOptionsSchema, retrievalFrom("q", { weights: {} })).weights, undefined);
    assert.equal(create(MemoryItemSchema, newItemFrom({ content: "x", importance: 0 })).importance, 0);
    assert.equal(create(MemoryItemSchema, newItemFrom({ content: "x" })).importance, undefined);
  });

  test("a half-life may have any length", () => {
    const sent = retrievalFrom("q", { weights: { recency: 1, recencyHalfLifeMs: 90_000.5 } });
    const { recencyHalfLife } = create(RetrieveOptionsSchema, sent).weights!;
    assert.deepEqual([recencyHalfLife?.seconds, recencyHalfLife?.nanos], [90n, 500_000]);
  });

  test("tokens of all pages are counted together", async () => {
    async function* pages() {
      yield create(RetrieveResponseSchema, { tokenCount: 3, revision: 7n, results: [{ score: 2 }] });
      yield create(RetrieveResponseSchema, { tokenCount: 4, revision: 8n, results: [{ score: 1 }] });
    }
    const found = await resultsOf(pages());
    assert.deepEqual([found.tokenCount, found.revision, found.map(({ score }) => score)], [7, 7, [2, 1]]);
  });
});
