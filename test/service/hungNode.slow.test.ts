import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { READS, startTwoNodes } from "./hangingNodes.ts";

/** Methods with different ways to the nodes, and parameters of several calls. */
const METHODS: readonly (readonly [string, (at: number) => readonly unknown[]])[] = [
  ["eth_getLogs", (at) => [{ fromBlock: `0x${(1 + at).toString(16)}`, toBlock: "0x10" }]],
  ["eth_call", (at) => [{ to: `0x${(1 + at).toString(16).padStart(40, "0")}` }, "0x10"]],
  ["debug_traceCall", (at) => [{ gas: `0x${at.toString(16)}` }, "0x10", {}]],
  ["eth_getTransactionReceipt", (at) => [`0x${at.toString(16).padStart(64, "0")}`]],
];

describe("a node that answers all but one method", { concurrency: true }, () => {
  for (const [method, params] of METHODS) {
    test(`costs no call of ${method}`, async () => {
      await using rig = await startTwoNodes({ hedge: { maxShare: 0 }, timeoutMs: 8_000 });
      const service = await rig.launch();
      Object.assign(rig.one.faults, { methods: [method], answer: "hang" });
      const answers = await Promise.all(Array.from({ length: READS }, (_, at) => rpc(service.url, method, params(at))));
      assert.deepEqual(
        answers.map(({ status, body }) => [status, body.error]),
        answers.map(() => [200, undefined]),
      );
    });
  }
});
