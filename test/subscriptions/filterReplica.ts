import type { BlockRange } from "../../src/core/logRange.ts";
import { parseLogQuery } from "../../src/ethereum/logFilter.ts";
import type { FilterStore } from "../../src/subscriptions/filterStore.ts";
import { LocalFilters } from "../../src/subscriptions/localFilters.ts";
import { PolledFilters } from "../../src/subscriptions/polledFilters.ts";
import { createSplit } from "../logs/askLogs.ts";
import { createFakeChain, type FakeBlock, fakeAddress, fakeHeads, fakeTopic } from "../logs/fakeChain.ts";
import { createFakeLogNode } from "../logs/fakeLogNode.ts";
import { createMemoryStore } from "../logs/memoryStore.ts";
import { createContext } from "../support/builders/request.ts";

/** Every second block has one log. */
const logs = Array.from({ length: 60 }, (_, at) =>
  at % 2 === 0 ? [{ address: fakeAddress(at % 3), topics: [fakeTopic(at)], data: "0x" as const }] : [],
);
export const chain = createFakeChain(logs);

/** A branch that replaces the chain from block 48. */
export const fork = createFakeChain(logs.slice(48), { base: chain.slice(0, 48), fork: "other" });

export const MAX_BYTES = 10_000_000;

/** The context of a client whose head is block `latest` of the given chain. */
export const at = (blocks: readonly FakeBlock[], latest: number, clientId = "client") =>
  createContext({ heads: fakeHeads(blocks, { latest, finalized: 40 }), clientId });

export const query = (value: object = {}) => parseLogQuery(value, { maxAddresses: 10, maxTopics: 10 });

/** The error for a filter that nobody has. */
export const missing = { code: -32000, message: "filter not found" };

const REPLICA = "1234abcd";

/**
 * One replica in front of a separate node. `reads`: the numbers of the blocks below the ring that were read. `cache` is that of
 * all replicas that share it.
 */
export const createReplica = (
  stores: { readonly local?: FilterStore; readonly shared?: FilterStore },
  cache = createMemoryStore(),
) => {
  const node = createFakeLogNode({ chain });
  const { local = new LocalFilters({ maxPerClient: 100, maxBytesPerClient: MAX_BYTES }), shared } = stores;
  const parentHashOf = async (hash: string) => [...chain, ...fork].find((block) => block.hash === hash)?.parentHash;
  const reads: number[] = [];
  const blocksBelow = async ({ from, to }: BlockRange) => {
    const numbers = Array.from({ length: Number(to - from) + 1 }, (_, index) => Number(from) + index);
    reads.push(...numbers);
    return numbers.flatMap((number) => node.options.chain[number] ?? []);
  };
  const filters = new PolledFilters({
    ...{
      logs: createSplit([node], { store: cache }),
      store: cache,
      parentHashOf,
      blocksBelow,
      local,
      shared,
      replica: REPLICA,
    },
  });
  return { node, filters, reads, cache };
};
