import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { SenderCache } from "../../src/evm/senders/senderCache.ts";

const MINUTE_MS = 60_000;
const SENDER: Address = `0x${"5e".repeat(20)}`;
const hashOf = (at: number): Hash => `0x${at.toString(16).padStart(64, "0")}`;

test("a sender remains for one minute, and is gone after two", () => {
  let nowMs = 0;
  const cache = new SenderCache({ nowMs: () => nowMs });
  cache.add(hashOf(1), SENDER);
  nowMs = MINUTE_MS;
  cache.add(hashOf(2), SENDER);
  assert.equal(cache.get(hashOf(1)), SENDER);
  nowMs = 2 * MINUTE_MS;
  cache.add(hashOf(3), SENDER);
  assert.equal(cache.get(hashOf(1)), undefined);
  assert.equal(cache.get(hashOf(2)), SENDER);
  nowMs = 4 * MINUTE_MS;
  cache.add(hashOf(4), SENDER);
  assert.equal(cache.get(hashOf(3)), undefined);
});

test("the newest half of the senders remains when there are too many", () => {
  const cache = new SenderCache({ max: 8, nowMs: () => 0 });
  for (let at = 0; at < 100; at++) {
    cache.add(hashOf(at), SENDER);
  }
  const found = Array.from({ length: 100 }, (_, at) => at).filter((at) => cache.get(hashOf(at)) !== undefined);
  assert.ok(found.length <= 8, `${found.length}`);
  assert.deepEqual(found.slice(-4), [96, 97, 98, 99]);
});
