import type { FakeBlock } from "../support/fakes/fakeChain.ts";
import { type CachedShape, compareCached } from "./support/compareCached.ts";
import type { BenchOptions, BenchResult } from "./support/result.ts";

const BLOCKS = 1_024;
const LOGS_A_BLOCK = 20;
const WORD = "b2".repeat(32);

const logsOf = ({ number, hash }: FakeBlock): readonly unknown[] =>
  Array.from({ length: LOGS_A_BLOCK }, (_, index) => ({
    address: `0x${"a1".repeat(20)}`,
    topics: [`0x${WORD}`, `0x${WORD}`],
    data: `0x${WORD}`,
    blockHash: hash,
    blockNumber: `0x${number.toString(16)}`,
    blockTimestamp: `0x${(1_700_000_000n + 2n * number).toString(16)}`,
    transactionHash: `0x${number.toString(16).padStart(64, "0")}`,
    transactionIndex: "0x0",
    logIndex: `0x${index.toString(16)}`,
    removed: false,
  }));

const logs: Pick<CachedShape, "method" | "params" | "handlers"> = {
  method: "eth_getLogs",
  params: [{ fromBlock: "0x0", toBlock: `0x${(BLOCKS - 1).toString(16)}` }],
  handlers: (chain) => ({
    eth_getLogs: ([filter]) => {
      const { fromBlock, toBlock } = filter as { fromBlock: string; toBlock: string };
      return chain.blocks.slice(Number(fromBlock), Number(toBlock) + 1).flatMap(logsOf);
    },
  }),
};

export const bench = (options: BenchOptions): Promise<BenchResult> =>
  compareCached(
    { ...logs, claim: "12 MB of logs from memory: at least 0.5, and loopP99Ms below 20", connections: 4 },
    options,
  );
