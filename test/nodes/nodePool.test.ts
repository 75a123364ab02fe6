import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import { NodePool } from "../../src/nodes/nodePool.ts";
import { createContext, createRequest } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeClock } from "../support/fakes/fakeClock.ts";
import { createChainNode } from "../support/servers/chainNode.ts";

/** Returns a pool of two nodes, with the requests that they get. The next read of the second one is a trial. */
const createTrialPool = () => {
  const chain = createFakeChain();
  const asked: string[] = [];
  const nodes = ["first", "second"].map((name) => {
    const node = createChainNode(name, chain);
    node.request = async () => {
      asked.push(name);
      if (node.down) {
        throw new NodeError("unreachable", name, "down");
      }
      return { body: new Uint8Array(), status: {} };
    };
    return node;
  });
  const [first, second] = nodes;
  assert.ok(first && second);
  Object.defineProperty(second.state, "needsTrial", { value: true });
  const pool = new NodePool("test", nodes, { attempts: 3, clock: createFakeClock() }, silent());
  const write = (sendToAll: boolean) =>
    pool.request(
      { ...createRequest({ method: "eth_sendRawTransaction", params: ["0x"] }), write: true, sendToAll },
      createContext(),
    );
  return { first, asked, write };
};

test("a write is sent to a node whose next read is a trial, if the other one is down", async () => {
  const { first, asked, write } = createTrialPool();
  first.down = true;
  first.available = false;
  await write(false);
  await write(true);
  assert.deepEqual(asked, ["second", "second"]);
});

test("a raw transaction is sent to a node whose next read is a trial too: it may get no reads for long", async () => {
  const { asked, write } = createTrialPool();
  await write(true);
  assert.deepEqual(asked.toSorted(), ["first", "second"]);
  await write(false);
  assert.deepEqual(asked.slice(2), ["first"]);
});
