import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cached } from "../../src/cache/cached.ts";
import type { CacheEntry, EntryStore } from "../../src/cache/cacheEntry.ts";
import { MemoryStore } from "../../src/cache/memoryStore.ts";
import { NegativeCache } from "../../src/cache/negativeCache.ts";
import type { Heads } from "../../src/core/heads.ts";
import type { RpcRequest, RpcResponse } from "../../src/core/rpcSource.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { blockOf, createHeads, hashOf } from "../support/builders/heads.ts";
import { countingSource, createContext, createRequest, createResponse } from "../support/builders/request.ts";
import { createStated } from "../support/builders/statedValues.ts";

const telemetry = createTelemetry({ level: "silent" });
const FINALIZED = 4;
const LATEST = 12;

/** Returns block `number` of a chain that forks from the first one at `since`. */
interface Fork {
  readonly fork: number;
  readonly forkedAt: number;
}

const fork: fc.Arbitrary<Fork> = fc.record({
  fork: fc.integer({ min: 0, max: 2 }),
  forkedAt: fc.integer({ min: FINALIZED + 1, max: LATEST }),
});

const headsAt = (at: Fork): Heads => createHeads({ latest: LATEST, finalized: FINALIZED, oldest: 2, ...at });
const forkOf = (at: Fork, number: number): number => (number >= at.forkedAt ? at.fork : 0);

interface Step {
  readonly replica: number;
  /** The chain of the replica's view, and the chain of the node at the same time. */
  readonly view: Fork;
  readonly node: Fork;
  readonly number: number;
  readonly kind: "recent" | "recentState" | "final" | "byTransaction" | "head";
}

const step: fc.Arbitrary<Step> = fc.record({
  replica: fc.integer({ min: 0, max: 1 }),
  view: fork,
  node: fork,
  number: fc.integer({ min: 1, max: LATEST }),
  kind: fc.constantFrom("recent", "recentState", "final", "byTransaction", "head"),
});

const requestFor = ({ view, number, kind }: Step): RpcRequest => {
  const block = { number: BigInt(number), hash: hashOf(number, forkOf(view, number)) };
  if (kind === "byTransaction") {
    return createRequest({ retention: kind, params: [hashOf(number, 99)] });
  }
  if (kind === "head") {
    return createRequest({ retention: kind });
  }
  return createRequest({ retention: number <= FINALIZED ? "final" : kind === "final" ? "recent" : kind, block });
};

/** Returns the node's own block for a request by number, for any view. Verified as in `nodes/`. */
const responseFrom = ({ node, number, kind }: Step, request: RpcRequest): RpcResponse => {
  const nodeBlock = blockOf(kind === "head" ? LATEST : number, forkOf(node, kind === "head" ? LATEST : number));
  const verified = nodeBlock.hash === request.block?.hash;
  return createResponse(JSON.stringify(nodeBlock.hash), { block: nodeBlock, ...(verified && { verified }) });
};

/** A store that both replicas share, and that never fails. */
const createSharedMap = (): EntryStore => {
  const entries = new Map<string, CacheEntry>();
  return {
    name: "redis",
    get: async (key) => entries.get(key),
    set: (key, entry) => {
      entries.set(key, entry);
    },
    delete: (key) => {
      entries.delete(key);
    },
  };
};

test("with two replicas, nodes on other forks and one Redis, every hit belongs to the view of its request", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      const redis = createSharedMap();
      let current: Step | undefined;
      const node = countingSource((request) => {
        assert.ok(current);
        return responseFrom(current, request);
      });
      const replicas = [0, 1].map(() =>
        cached(node, {
          ...{
            chain: "test",
            keys: { prefix: "" },
            stores: [redis],
            negativeCache: new NegativeCache(),
            stated: createStated(),
            telemetry,
          },
          memory: new MemoryStore(64 * 1024, telemetry),
        }),
      );
      for (const step of steps) {
        current = step;
        const request = requestFor(step);
        const answer = await replicas[step.replica]?.request(request, createContext({ heads: headsAt(step.view) }));
        if (answer?.status.hit === undefined || step.kind === "head") {
          continue;
        }
        const expected = hashOf(step.number, forkOf(step.view, step.number));
        assert.equal(Buffer.from(answer.body as Uint8Array).toString(), JSON.stringify(expected));
      }
    }),
    { numRuns: 200 },
  );
});
