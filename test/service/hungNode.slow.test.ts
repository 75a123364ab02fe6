import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { assertCostsNone, READS, startTwoNodes } from "./hangingNodes.ts";

/** Methods with different ways to the nodes, and parameters of several calls. */
const METHODS: readonly (readonly [string, (at: number) => readonly unknown[]])[] = [
  ["eth_getLogs", (at) => [{ fromBlock: `0x${(1 + at).toString(16)}`, toBlock: "0x10" }]],
  ["eth_call", (at) => [{ to: `0x${(1 + at).toString(16).padStart(40, "0")}` }, "0x10"]],
  ["debug_traceCall", (at) => [{ gas: `0x${at.toString(16)}` }, "0x10", {}]],
  ["eth_getTransactionReceipt", (at) => [`0x${at.toString(16).padStart(64, "0")}`]],
];

/** Another node gets a read after half of it, and has the other half to answer on a busy machine. */
const WITHOUT_HEDGES = { hedge: { maxShare: 0 }, timeoutMs: 30_000 };

describe("a node that answers all but one method", { concurrency: true }, () => {
  test("costs none of 200 reads, from the start on, without hedges", async () => {
    await using rig = await startTwoNodes(WITHOUT_HEDGES);
    await assertCostsNone(rig, ["eth_getBalance"]);
  });

  for (const [method, params] of METHODS) {
    test(`costs no call of ${method}`, async () => {
      await using rig = await startTwoNodes(WITHOUT_HEDGES);
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
