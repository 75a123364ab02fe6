import assert from "node:assert/strict";
import { test } from "node:test";
import { NodePool } from "../../src/nodes/nodePool.ts";
import { createContext, createRequest } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeClock } from "../support/fakes/fakeClock.ts";
import { createChainNode } from "../support/servers/chainNode.ts";

const READS = 400;

test("while two of three nodes fail, the other one gets all of 400 reads at once", async () => {
  const chain = createFakeChain();
  const [healthy, ...failing] = ["healthy", "broken1", "broken2"].map((name) => createChainNode(name, chain));
  assert.ok(healthy);
  // The healthy node has most requests in flight, so that a failing one seems to be better.
  for (let request = 0; request < READS; request++) {
    healthy.health.beginCall();
  }
  for (const node of failing) {
    node.available = false;
  }
  const pool = new NodePool("test", [healthy, ...failing], { attempts: 3, clock: createFakeClock() }, silent());
  const read = () =>
    pool.request(createRequest({ method: "eth_getBlockByNumber", params: ["0x5", false] }), createContext());
  await Promise.all(Array.from({ length: READS }, read));
  assert.deepEqual(
    failing.map(({ calls }) => calls),
    [0, 0],
  );
});
