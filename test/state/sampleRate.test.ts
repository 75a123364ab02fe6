import assert from "node:assert/strict";
import { test } from "node:test";
import type { LocalAnswer } from "../../src/state/answers/answerSamples.ts";
import { AnswerSamples } from "../../src/state/answers/answerSamples.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import { StateSamples } from "../../src/state/stateSamples.ts";
import { createCost } from "./costRig.ts";

const BLOCK = { number: 7n, hash: `0x${"7".repeat(64)}` } as const;
const KEY: StateKey = { field: "balance", address: `0x${"c0".repeat(20)}`, slot: undefined };
const ANSWER: LocalAnswer = {
  key: JSON.stringify(["eth_call", [{}, null]]),
  method: "eth_call",
  block: BLOCK,
  body: Buffer.from('"0xab"'),
  reads: { keys: [], emptiness: [], addresses: new Set(), blockOpcodes: new Set() },
};

test("one local answer in 100 is compared, reads and calls together at most once a second", () => {
  const { cost, clock } = createCost();
  const startMs = clock.nowMs;
  const asked: string[] = [];
  const events = { onCompared: () => undefined, onDifference: () => undefined };
  const unused = { unitsFor: () => 0, read: async () => new Map() };
  const readSingly = async () => {
    asked.push("read");
    return new Map();
  };
  const node = { name: "one", origin: "one", available: true, reader: { ...unused, readSingly } };
  const reads = new StateSamples({
    ...{ cost, ...events },
    values: { sourceOf: () => undefined },
    comparison: { nodeBeside: () => node },
  });
  const calls = new AnswerSamples({
    ...{ cost, ...events },
    onDoubted: () => undefined,
    fetch: async () => {
      asked.push("call");
      return [];
    },
  });
  const considerBoth = () => {
    reads.consider(KEY, BLOCK, Buffer.from('"0x1"'));
    calls.consider(ANSWER);
  };
  considerBoth();
  assert.deepEqual(asked, []);
  clock.random = 0.005;
  considerBoth();
  assert.deepEqual(asked, ["read"]);
  clock.nowMs = startMs + 999;
  considerBoth();
  clock.nowMs = startMs + 1_000;
  calls.consider(ANSWER);
  considerBoth();
  assert.deepEqual(asked, ["read", "call"]);
});
