import assert from "node:assert/strict";
import { test } from "node:test";
import { parsedResult } from "../../src/core/rpcSource.ts";
import type { PendingMode, PendingView } from "../../src/core/view.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import type { MethodChain } from "../../src/methods/method.ts";
import { createResponse } from "../support/builders/request.ts";
import { a, callMethod, createMethodChain, heads } from "./requestOf.ts";

const base = heads.latest;
const HASH = `0x${"cc".repeat(32)}`;
const known = createResponse('"0x5"', { status: { hit: "state" }, block: base, grade: "proven" });

/** A chain whose known values are all proven at the newest sealed block. */
const chain: MethodChain = {
  ...createMethodChain({ reads: { request: () => assert.fail("no node is asked") } }),
  state: {
    request: () => known,
    findProven: async () => known,
    beginProof: () => () => undefined,
  },
};

/** The pending blocks have written nothing. */
const pendingOf = (mode: PendingMode): PendingView => {
  const pending: PendingView = {
    ...({ mode, id: "1", base, blocks: [], newest: undefined, blocksFrom: "view", stateFrom: "view" } as const),
    ...{ account: () => undefined, storage: () => undefined, nonce: (_: string, nonce: bigint) => nonce },
    ...{ find: () => undefined, byHash: () => undefined, atHash: () => pending },
  };
  return pending;
};

const READS = [
  ["eth_getBalance", [a]],
  ["eth_getTransactionCount", [a]],
  ["eth_getStorageAt", [a, "0x1"]],
  ["eth_getCode", [a]],
] as const;

const LABELS: readonly (readonly [PendingMode, "checked" | undefined])[] = [
  ["live", "checked"],
  ["degraded", "checked"],
  ["unverified", undefined],
];

for (const [mode, label] of LABELS) {
  test(`a value that the pending blocks have not written is ${label ?? "stated"} in the mode ${mode}: no header shows that they have not`, async () => {
    for (const [method, params] of READS) {
      for (const block of ["pending", { blockHash: HASH }]) {
        const view = { heads, pending: pendingOf(mode) };
        const { grade, pending } = await callMethod(chain, method, [...params, block], view);
        assert.deepEqual({ grade, pending }, { grade: label, pending: mode }, `${method} at ${JSON.stringify(block)}`);
      }
      const { grade } = await callMethod(chain, method, [...params, "latest"], { heads, pending: pendingOf(mode) });
      assert.equal(grade, "proven", `${method} at latest`);
    }
  });
}

for (const [submitted, expected] of [
  [0n, ["0x7", "checked"]],
  [2n, ["0x9", undefined]],
] as const) {
  test(`a nonce that ${submitted} submitted transactions raise is ${expected[1] ?? "stated"}`, async () => {
    const sender = { nonce: 7n, balance: 0n, codeHash: EMPTY_CODE_HASH };
    const pending: PendingView = {
      ...pendingOf("live"),
      account: () => ({ account: sender, isCleared: false }),
    };
    const sent = { ...chain, advanceNonce: async (_: string, nonce: bigint) => nonce + submitted };
    const response = await callMethod(sent, "eth_getTransactionCount", [a, "pending"], { heads, pending });
    assert.deepEqual([parsedResult(response), response.grade], expected);
  });
}

test("in stale, the nonce is that of the verified messages if the source has a lower one", async () => {
  const stale: PendingView = {
    ...pendingOf("stale"),
    ...({ blocksFrom: "latest", stateFrom: "latest" } as const),
    nonce: (_, nonce) => (nonce > 7n ? nonce : 7n),
  };
  const response = await callMethod(chain, "eth_getTransactionCount", [a, "pending"], {
    heads,
    pending: stale,
  });
  assert.deepEqual([parsedResult(response), response.pending], ["0x7", "stale"]);
});
