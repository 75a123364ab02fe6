import { setTimeout as sleep } from "node:timers/promises";
import { createUnitsOf, PRICE_TABLES, type UnitTable } from "../../src/access/providerUnits.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { type IndexedChain, indexBlock, startIndexedChain } from "../support/servers/indexedChain.ts";
import { createService } from "../support/servers/service.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";

/** A poll finds each block of the head: the next one is sealed at once, and due after this time. */
const BLOCK_TIME_MS = 500;
const SETTLED_MS = 1_200;

type Counts = Readonly<Record<string, number>>;

/** The calls of one run, and what they cost. */
interface Run {
  readonly name: string;
  readonly calls: Counts;
  readonly direct: Counts;
}

/** Resolves once no call has come for some time: forebay has read what it reads by itself. */
const settle = async ({ calls }: IndexedChain, url: string): Promise<void> => {
  const count = () => calls.entries().reduce((sum, [name, each]) => sum + (name.endsWith("latest") ? 0 : each), 0);
  for (let before = -1; before !== count(); ) {
    before = count();
    await rpc(url, "eth_blockNumber", []);
    await sleep(SETTLED_MS);
  }
};

const countOf = (calls: ReadonlyMap<string, number>): Counts => Object.fromEntries([...calls].toSorted());

const since = (before: Counts, calls: ReadonlyMap<string, number>): Counts =>
  Object.fromEntries(
    Object.entries(countOf(calls))
      .map(([name, count]) => [name, count - (before[name] ?? 0)] as const)
      .filter(([, count]) => count > 0),
  );

/** Starts forebay, and reads old blocks, then each new one. */
const measure = (prices: keyof typeof PRICE_TABLES, blocks: number, heads: number): Promise<readonly Run[]> =>
  withLifespan(async (t) => {
    const indexed = await startIndexedChain(t, blocks + 60);
    const { chain, calls } = indexed;
    const service = await createService(
      { nodes: [{ url: indexed.url }], blockTimeMs: BLOCK_TIME_MS, forks: "prague" },
      { usage: { prices } },
    );
    t.after(() => service.close());
    await settle(indexed, service.url);
    const start = countOf(calls);
    for (let number = 1; number <= blocks; number++) {
      await indexBlock(service.url, number);
    }
    await settle(indexed, service.url);
    const backfill = since(start, calls);
    // The first heads show forebay what is read of each.
    const follow = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at++) {
        await chain.mine(1);
        const { number } = chain.head;
        await until(
          async () => Number((await rpc(service.url, "eth_blockNumber", [])).body.result) === number,
          "the head is served",
        );
        await indexBlock(service.url, number);
      }
    };
    await follow(2);
    const before = countOf(calls);
    await follow(heads);
    const head = since(before, calls);
    const direct = (count: number): Counts => ({ eth_getBlockByNumber: count, eth_getLogs: count });
    return [
      { name: "start", calls: start, direct: {} },
      { name: "backfill", calls: backfill, direct: direct(blocks) },
      { name: "head", calls: head, direct: direct(heads) },
    ];
  });

const methodOf = (name: string): string => name.split(" ")[0] ?? name;

const unitsOf = (counts: Counts, table: UnitTable): number => {
  const price = createUnitsOf(table);
  return Object.entries(counts).reduce((sum, [name, count]) => sum + count * price(methodOf(name)), 0);
};

/** Counts the provider units of an indexer that reads each block in full, and its logs: through forebay, and directly. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const [blocks, heads] = short ? [100, 5] : [600, 30];
  const ratios: Record<string, number> = {};
  const rows = [];
  for (const prices of ["alchemy", "infura", "quicknode", "calls"] as const) {
    for (const { name, calls, direct } of await measure(prices, blocks, heads)) {
      const [ours, yardstick] = [unitsOf(calls, PRICE_TABLES[prices]), unitsOf(direct, PRICE_TABLES[prices])];
      ratios[`${prices} ${name}`] = yardstick === 0 ? ours : round(ours / yardstick);
      rows.push({ prices, name, direct: yardstick, forebay: ours, ratio: ratios[`${prices} ${name}`] });
      console.log(JSON.stringify({ prices, name, calls }));
    }
  }
  console.table(rows);
  const ours = ratios["alchemy head"] ?? Number.NaN;
  return {
    claim: "provider units of an indexer at the head, as a share of asking the node directly",
    ...{ ratio: round(1 / ours), ours, yardstick: 1 },
    unit: "share of direct units",
    ...ratios,
  };
};
