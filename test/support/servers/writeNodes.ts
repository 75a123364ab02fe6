import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { keccak256 } from "viem";
import { metric, rpc } from "../clients/rpc.ts";
import { until } from "../clients/until.ts";
import { createFakeChain } from "../fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../fakes/fakeNode.ts";
import { FakeError } from "../fakes/front.ts";
import { type Lifespan, startRedis } from "./redis.ts";
import { createService, type Service, type ServiceChain } from "./service.ts";

/** How a node answers raw transactions. `sealed`: it has each in a block already. `lies`: it returns another hash. */
export type WriteBehaviour = "accepts" | "lies" | "late" | "known" | "low" | "sealed" | "fails";

export const WRONG_HASH = `0x${"ab".repeat(32)}`;
const LATE_MS = 20;
const AT_ONCE = 20;

/** A node that remembers the raw transactions that it got. */
export interface WriteNode {
  readonly node: FakeNode;
  /** How often it got each raw transaction. */
  readonly received: ReadonlyMap<string, number>;
  /** Gives it a transaction, so that it knows its hash. */
  knows(hash: string): void;
}

/** Starts nodes of one chain. Those that accept transactions know them by their hash. */
export const startWriteNodes = async (
  t: Lifespan,
  behaviours: readonly WriteBehaviour[],
): Promise<readonly WriteNode[]> => {
  const chain = createFakeChain();
  return Promise.all(
    behaviours.map(async (behaviour) => {
      const received = new Map<string, number>();
      const hashes = new Set<string>();
      const send = async ([raw]: readonly unknown[]): Promise<string> => {
        const text = String(raw);
        received.set(text, (received.get(text) ?? 0) + 1);
        const hash = keccak256(text as `0x${string}`);
        switch (behaviour) {
          case "known":
            throw new FakeError(-32_000, "already known");
          case "sealed":
            hashes.add(hash);
            throw new FakeError(-32_000, "nonce too low: next nonce 7, tx nonce 0");
          case "low":
            throw new FakeError(-32_000, "nonce too low: next nonce 7, tx nonce 0");
          case "fails":
            throw new FakeError(-32_603, "the pool is closed");
          case "lies":
            return WRONG_HASH;
          case "late":
            await sleep(LATE_MS);
        }
        hashes.add(hash);
        return hash;
      };
      const node = await createFakeNode({
        chain,
        handlers: {
          eth_sendRawTransaction: send,
          eth_getTransactionByHash: ([hash]) =>
            hashes.has(String(hash)) ? { hash, blockHash: null, blockNumber: null } : null,
        },
      });
      t.after(() => node.close());
      return { node, received, knows: (hash) => void hashes.add(hash) };
    }),
  );
};

export const rawOf = (index: number) => `0x02${index.toString(16).padStart(64, "0")}` as const;

/** Starts a service that sends raw transactions to all of these nodes. */
export const startToAll = async (t: Lifespan, nodes: ServiceChain["nodes"], cache = {}): Promise<Service> => {
  const service = await createService({ writes: "all", nodes, verify: "cheap" }, { cache });
  t.after(() => service.close());
  return service;
};

/** Sends transactions, each through one of the services. Returns the results in their order. */
const sendAll = async (services: readonly Service[], count: number): Promise<readonly unknown[]> => {
  const results: unknown[] = [];
  let next = 0;
  const run = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) {
      const { url } = services[index % services.length] ?? assert.fail();
      const { body } = await rpc(url, "eth_sendRawTransaction", [rawOf(index)]);
      results[index] = body.result ?? body.error;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, run));
  return results;
};

/** The client's answer does not wait for the slowest node. */
export const assertOnce = async (nodes: readonly WriteNode[], count: number): Promise<void> => {
  await until(() => nodes.every(({ received }) => received.size === count), "each node got each transaction");
  for (const { received } of nodes) {
    assert.ok(
      [...received.values()].every((times) => times === 1),
      "once",
    );
  }
};

/** Sends transactions through two replicas to three nodes: one is late, one has each already, one fails. */
export const sendThroughReplicas = async (t: Lifespan, count: number): Promise<void> => {
  const redis = await startRedis(t);
  const nodes = await startWriteNodes(t, ["late", "known", "fails"]);
  const configured = nodes.map(({ node }) => ({ url: node.url }));
  const services = await Promise.all([1, 2].map(() => startToAll(t, configured, { redis: redis.url })));
  const results = await sendAll(services, count);
  assert.deepEqual(
    results,
    Array.from({ length: count }, (_, index) => keccak256(rawOf(index))),
  );
  await assertOnce(nodes, count);
  const known = await Promise.all(
    services.map(({ opsUrl }) => metric(opsUrl, "forebay_upstream_broadcasts_total", 'outcome="known"')),
  );
  assert.equal(
    known.reduce((sum, each) => sum + each, 0),
    count,
  );
};
