import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { LogFilter } from "../../src/ethereum/logFilter.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { createContext } from "../support/builders/request.ts";
import { createSplit, range, readLogs } from "./askLogs.ts";
import { createFakeChain, type FakeBlock, fakeAddress, fakeHeads, fakeTopic, plainScan } from "./fakeChain.ts";
import { createFakeLogNode, nodeError } from "./fakeLogNode.ts";

const BLOCKS = 420;

const address = fc.integer({ min: 0, max: 2 }).map(fakeAddress);
const topic = fc.integer({ min: 0, max: 3 }).map(fakeTopic);
const logs = fc.array(
  fc.record({ address, topics: fc.array(topic, { maxLength: 2 }), data: fc.constantFrom("0x", "0x22") } as const),
  { maxLength: 2 },
);
/** Faults occur next to blocks without logs. So a chain repeats a pattern of blocks with and without logs. */
const blockLogs = fc
  .array(fc.tuple(logs, fc.integer({ min: 0, max: 40 })), { minLength: 3, maxLength: 30 })
  .map((pattern) => {
    const period = pattern.flatMap(([each, emptyBlocks]) => [each, ...Array.from({ length: emptyBlocks }, () => [])]);
    return Array.from({ length: BLOCKS }, (_, at) => period[at % period.length] ?? []);
  });

const filter: fc.Arbitrary<LogFilter> = fc.record({
  addresses: fc.uniqueArray(address, { maxLength: 2 }).map((values) => values.sort()),
  topics: fc.array(
    fc.uniqueArray(topic, { maxLength: 2 }).map((values) => values.sort()),
    { maxLength: 3 },
  ),
});

const nodeFaults = fc.record({
  /** Number of blocks between the announced head and the head of the machine behind the URL. */
  lag: fc.constantFrom(0, 0, 0, 3, 40),
  /** Number of blocks at the end of a range whose logs are missing. */
  leavesOut: fc.constantFrom(0, 0, 0, 4),
  failsEvery: fc.constantFrom(0, 0, 2, 3),
  prunedBelow: fc.constantFrom(0, 0, 100),
  maxBlocks: fc.constantFrom(10_000, 100, 30),
  maxResults: fc.constantFrom(10_000, 20),
  timestamps: fc.boolean(),
  /** The node ignores empty positions at the end of a filter. */
  ignoresWildcards: fc.boolean(),
  /** Number of requests after which the node switches to the other fork. */
  switchesAfter: fc.constantFrom(1_000_000, 1_000_000, 0, 2, 7),
});

const query = fc.record({
  filter: fc.nat({ max: 1 }),
  bounds: fc.tuple(fc.nat({ max: BLOCKS - 1 }), fc.nat({ max: BLOCKS - 1 })),
  /** Whether the request's view has the other fork. */
  fork: fc.boolean(),
});

const scenario = fc.record({
  blockLogs,
  forkLogs: blockLogs,
  filters: fc.tuple(filter, filter),
  finalized: fc.integer({ min: 150, max: 380 }),
  ring: fc.constantFrom(100, 300, 1_000),
  nodes: fc.array(nodeFaults, { minLength: 1, maxLength: 3 }),
  queries: fc.array(query, { minLength: 1, maxLength: 4 }),
});

test("a response equals a plain scan of the view's chain, or is an error, never a subset", async () => {
  let answered = 0;
  let rejected = 0;
  await fc.assert(
    fc.asyncProperty(scenario, async ({ blockLogs, forkLogs, filters, finalized, ring, nodes, queries }) => {
      const chain = createFakeChain(blockLogs);
      // A log that is missing below the ring cannot be detected, and no reorganisation is deeper than the ring.
      const isBlind = nodes.some(({ leavesOut }) => leavesOut > 0);
      const ringBlocks = isBlind ? BLOCKS : ring;
      const forkAt = Math.max(finalized + 10, BLOCKS - ringBlocks + 1);
      const other = createFakeChain(forkLogs.slice(forkAt), { base: chain.slice(0, forkAt), fork: "other" });
      const fakes = nodes.map((faults, which) => {
        let requests = 0;
        const fake = createFakeLogNode({
          chain,
          name: `node${which}`,
          timestamps: faults.timestamps,
          ignoresWildcards: faults.ignoresWildcards,
          machineHead: BLOCKS - 1 - faults.lag,
          prunedBelow: faults.prunedBelow,
          onLogs: ({ from, to, results }) => {
            requests++;
            if (requests > faults.switchesAfter) {
              fake.options.chain = other;
            }
            if (faults.failsEvery > 0 && requests % faults.failsEvery === 0) {
              return nodeError("gateway broke", -32603, "unreachable");
            }
            if (to - from + 1 > faults.maxBlocks) {
              return nodeError(`limited to a ${faults.maxBlocks} range`);
            }
            return results > faults.maxResults
              ? nodeError(`query returned more than ${faults.maxResults} results`, -32005)
              : undefined;
          },
          change: (logs, { to, byHash }) =>
            byHash ? logs : logs.filter((log) => numberOf(log) <= to - faults.leavesOut || faults.leavesOut === 0),
        });
        return fake;
      });
      const split = createSplit(fakes);
      for (const { filter: which, bounds, fork } of queries) {
        const view: readonly FakeBlock[] = fork ? other : chain;
        const blocks = range(Math.min(...bounds), Math.max(...bounds));
        const context = createContext({ heads: fakeHeads(view, { finalized, ring: ringBlocks }) });
        const wanted = filters[which === 0 ? 0 : 1];
        try {
          const answer = await readLogs(await split.request(wanted, blocks, context));
          assert.deepEqual(answer, plainScan(view, wanted, blocks));
          answered++;
        } catch (error) {
          if (!(error instanceof RpcError)) {
            throw error;
          }
          rejected++;
        }
      }
    }),
    // The same cases each time. Another seed finds other ones.
    { numRuns: Number(process.env.FOREBAY_RUNS ?? 100), seed: Number(process.env.SEED ?? 1) },
  );
  assert.ok(answered > rejected / 4, `${answered} answered, ${rejected} rejected`);
});

const numberOf = (log: unknown): number =>
  typeof log === "object" && log !== null && "blockNumber" in log ? Number(log.blockNumber) : Number.NaN;
