// Times, numbers and data, without a server.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { JsonObject } from "../src/index.js";
import { InvalidArgumentError, chatMessage, data, readableText, text, toolCall, toolCallResult } from "../src/index.js";
import { objectFrom, timestampFrom, timeTo, durationFrom, millisTo, valueFrom, valueTo } from "../src/values.js";

test("a time keeps its microseconds, whatever zone it is given in", () => {
  const expected = "2026-05-01T12:00:00.123456Z";
  for (const given of [
    "2026-05-01T12:00:00.123456Z",
    "2026-05-01t14:00:00.123456+02:00",
    "2026-05-01T06:30:00.123456-05:30",
    "2026-05-01T12:00:00.123456999Z",
  ]) {
    assert.equal(timeTo(timestampFrom(given, "time")), expected);
  }
  assert.equal(timeTo(timestampFrom("2026-05-01T12:00:00Z", "time")), "2026-05-01T12:00:00.000000Z");
  assert.equal(timeTo(timestampFrom(new Date(1.5e12 + 7), "time")), "2017-07-14T02:40:00.007000Z");
});

test("times before 1970 and at the ends of what protobuf holds", () => {
  for (const time of [
    "1969-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00.000000Z",
    "9999-12-31T23:59:59.999999Z",
  ]) {
    assert.equal(timeTo(timestampFrom(time, "time")), time);
  }
  assert.equal(timestampFrom("1969-12-31T23:59:59.999999Z", "time").seconds, -1n);
});

test("what is no time is refused by name", () => {
  for (const wrong of [
    "2026-05-01T12:00:00",
    "2026-05-01",
    "yesterday",
    "",
    "2026-13-01T00:00:00Z",
    "2026-05-01T25:00:00Z",
    new Date(NaN),
    12 as never,
    null as never,
  ]) {
    assert.throws(() => timestampFrom(wrong, "startTime"), { name: "InvalidArgumentError", field: "startTime", message: /^startTime: / });
  }
});

test("lengths of time", () => {
  for (const millis of [0, 1, 1500, 0.001, 86_400_000.5, -2500]) {
    assert.equal(millisTo(durationFrom(millis, "ttlMs")), millis);
  }
  assert.throws(() => durationFrom(Infinity, "ttlMs"), { field: "ttlMs" });
  assert.throws(() => durationFrom(NaN, "ttlMs"), { field: "ttlMs" });
});

test("integers that JavaScript does not hold exactly are refused", () => {
  for (const number of [2 ** 53, -(2 ** 53), 1e20, 9007199254740993]) {
    assert.throws(() => objectFrom({ a: { b: [number] } }, "metadata"), {
      name: "InvalidArgumentError",
      field: "metadata.a.b[0]",
      message: /^metadata\.a\.b\[0\]: .* send it as a string$/,
    });
  }
  assert.throws(() => valueFrom(1n as never, "value"), /a bigint is not a JSON value; send 1 as a string/);
  assert.equal(valueTo(valueFrom(2 ** 53 - 1, "value")), 2 ** 53 - 1);
  assert.equal(valueTo(valueFrom(0.1, "value")), 0.1);
  assert.equal(valueTo(valueFrom(-1e300, "value")), -1e300);
});

test("what is not JSON is refused", () => {
  for (const wrong of [NaN, Infinity, new Date(), new Map(), () => 1, Symbol("x"), undefined, [undefined]]) {
    assert.throws(() => valueFrom(wrong as never, "value"), /^InvalidArgumentError: value/);
  }
  assert.throws(() => objectFrom([] as never, "content"), InvalidArgumentError);
  assert.throws(() => objectFrom(JSON.parse('{"__proto__": 1}') as never, "content"), InvalidArgumentError);
});

test("what is nested too deeply, or holds itself, is refused", () => {
  const nested = (depth: number): JsonObject => (depth === 0 ? {} : { a: nested(depth - 1) });
  objectFrom(nested(29), "content");
  assert.throws(() => objectFrom(nested(31), "content"), /nested too deeply/);
  const circle: Record<string, JsonObject> = {};
  circle["itself"] = circle;
  assert.throws(() => valueFrom(circle, "value"), InvalidArgumentError);
});

test("properties that are undefined are not there", () => {
  assert.deepEqual(objectFrom({ a: 1, b: undefined }, "content"), { a: 1 });
});

test("messages read well", () => {
  const image = { type: "binary", mimeType: "image/png", name: "cat.png" } as const;
  const parts = ["look", image, toolCall("search", { q: "tea" }), toolCall("stop"), data({ n: [1, "ü"] })];
  const message = chatMessage("user", parts, { name: "Ada" });
  assert.equal(readableText(message), 'look\n[image/png cat.png]\nsearch({"q":"tea"})\nstop()\n{"n":[1,"ü"]}');
  assert.equal(readableText(toolCallResult("trains", { at: "12:04" })), 'trains: {"at":"12:04"}');
  assert.equal(readableText(toolCallResult("", "none")), "none");
  assert.equal(readableText(undefined), "");
  assert.deepEqual(chatMessage("user", "hi").parts, [text("hi")]);
  assert.deepEqual(chatMessage("user", text("hi")).parts, [text("hi")]);
});
