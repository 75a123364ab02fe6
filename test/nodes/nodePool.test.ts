import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import { NodePool } from "../../src/nodes/nodePool.ts";
import { createContext, createRequest } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeClock } from "../support/fakes/fakeClock.ts";
import { createChainNode } from "../support/servers/chainNode.ts";

const READS = 400;

test("while two of three nodes fail, all are used and counted, and none of 400 reads at once fails", async () => {
  const telemetry = silent();
  const chain = createFakeChain();
  const [healthy, ...failing] = ["healthy", "broken1", "broken2"].map((name) => createChainNode(name, chain));
  assert.ok(healthy);
  // The healthy node has most requests in flight, so that a failing one seems to be better.
  for (let request = 0; request < READS; request++) {
    healthy.health.beginCall("eth_getBalance", {});
  }
  let refused = 0;
  for (const node of failing) {
    node.available = false;
    Object.defineProperty(node, "isFailing", { get: () => !node.available });
    node.onCall = () => {
      if (!node.available) {
        refused += 1;
        throw new NodeError("unreachable", node.name, "reset");
      }
    };
  }
  const pool = new NodePool("test", [healthy, ...failing], { attempts: 3, clock: createFakeClock() }, telemetry);
  const read = () =>
    pool.request(createRequest({ method: "eth_getBlockByNumber", params: ["0x5", false] }), createContext());
  const allUsed = async () => (await telemetry.metrics.upstreamAllUsed.get()).values[0]?.value;

  // The first retry of a read is free. A second one would exceed the budget of retries.
  await Promise.all(Array.from({ length: READS }, read));
  assert.equal(refused, READS);
  assert.equal(await allUsed(), 1);
  for (const node of failing) {
    node.available = true;
  }
  await read();
  assert.deepEqual([refused, await allUsed()], [READS, 0]);
});
