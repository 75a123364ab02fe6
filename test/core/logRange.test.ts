import assert from "node:assert/strict";
import { test } from "node:test";
import type { Heads, RingBlock } from "../../src/core/heads.ts";
import { type LogRange, resolveLogRange } from "../../src/core/logRange.ts";
import { ZERO_HASH } from "../../src/ethereum/hex.ts";
import type { BlockNumberOrTag } from "../../src/ethereum/logFilter.ts";

const latest: RingBlock = {
  number: 100n,
  hash: ZERO_HASH,
  parentHash: ZERO_HASH,
  timestamp: 0n,
  logsBloom: new Uint8Array(256),
};
const heads: Heads = {
  latest,
  isAgreed: false,
  safe: { number: 90n, hash: ZERO_HASH },
  finalized: undefined,
  oldest: 0n,
  at: () => undefined,
  header: () => undefined,
};

const resolve = (
  from: BlockNumberOrTag | undefined,
  to: BlockNumberOrTag | undefined,
  pendingNumber: bigint | undefined = 102n,
  maxBlocks?: number,
): LogRange => resolveLogRange(from, to, { heads, pendingNumber, maxBlocks });

const sealed = (from: bigint, to: bigint) => ({ sealed: { from, to } });
const pending = (from: bigint, to: bigint) => ({ pending: { from, to } });

test("the table of answers for getLogs", () => {
  assert.deepEqual(resolve(undefined, undefined), sealed(100n, 100n));
  assert.deepEqual(resolve("earliest", "safe"), sealed(0n, 90n));
  assert.deepEqual(resolve(5n, undefined), sealed(5n, 100n));
  assert.deepEqual(resolve(5n, "pending"), { ...sealed(5n, 100n), ...pending(101n, 102n) });
  assert.deepEqual(resolve(undefined, "pending"), { ...sealed(100n, 100n), ...pending(101n, 102n) });
  assert.deepEqual(resolve("pending", undefined), pending(101n, 102n));
  assert.deepEqual(resolve("pending", "pending"), pending(101n, 102n));
  assert.deepEqual(resolve("pending", 102n), pending(101n, 102n));
  assert.deepEqual(resolve("pending", "latest"), {});
  assert.deepEqual(resolve("pending", 7n), {});
  assert.deepEqual(resolve(99n, 101n), { ...sealed(99n, 100n), ...pending(101n, 101n) });
  assert.deepEqual(resolve(102n, undefined), pending(102n, 102n));
});

test("without pending blocks, pending means latest", () => {
  const none = (from: BlockNumberOrTag | undefined, to: BlockNumberOrTag | undefined) =>
    resolveLogRange(from, to, { heads, pendingNumber: undefined });
  assert.deepEqual(none("pending", "pending"), sealed(100n, 100n));
  assert.deepEqual(none("pending", undefined), sealed(100n, 100n));
  assert.deepEqual(none(5n, "pending"), sealed(5n, 100n));
  assert.deepEqual(none("pending", 7n), {});
});

test("a node's own pending block has no number here: only the tag selects it", () => {
  const ofNode = (from: BlockNumberOrTag | undefined, to: BlockNumberOrTag | undefined) =>
    resolveLogRange(from, to, { heads, pendingNumber: 101n, isNodePending: true });
  assert.deepEqual(ofNode("pending", undefined), pending(101n, 101n));
  assert.deepEqual(ofNode(5n, "pending"), { ...sealed(5n, 100n), ...pending(101n, 101n) });
  for (const [from, to] of [
    [101n, undefined],
    [101n, "pending"],
    [undefined, 101n],
    ["pending", 101n],
  ] as const) {
    assert.throws(() => ofNode(from, to), { code: -32602, message: /requested 101, head 100$/ });
  }
});

test("errors of invalid ranges name the reason", () => {
  const invalid = { code: -32602, message: "invalid block range params" };
  assert.throws(() => resolve(8n, 7n), invalid);
  assert.throws(() => resolve("latest", 7n), invalid);
  assert.throws(() => resolve(200n, 150n), invalid);
  const beyond = (requested: number) => ({
    code: -32602,
    message: `block range extends beyond current head block: requested ${requested}, head 100`,
  });
  assert.throws(() => resolve(5n, 103n), beyond(103));
  assert.throws(() => resolve(103n, undefined), beyond(103));
  assert.throws(() => resolve("pending", 103n), beyond(103));
  assert.throws(() => resolve("finalized", undefined), { code: -32000, message: "finalized block not found" });
  assert.throws(() => resolve(0n, 50n, 102n, 50), { code: -32602, message: /a range of 51 blocks, at most 50/ });
});
