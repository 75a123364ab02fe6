import { type Address, formatQuantity } from "../../src/ethereum/hex.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNode } from "../support/fakes/fakeNode.ts";
import { FakeError } from "../support/fakes/front.ts";

/** The blocks of the demo's log query. */
export const HISTORY_BLOCKS = 50_000;
const TOKEN: Address = `0x${"70".repeat(20)}`;
/** The filter of the demo's log query. */
export const HISTORY_QUERY = { fromBlock: "0x1", toBlock: formatQuantity(BigInt(HISTORY_BLOCKS)), address: TOKEN };
/** Blocks that are not final, and empty. */
const MORE_BLOCKS = 400;
const EVERY = 50;
const MAX_RANGE = 2_000;
const LATENCY_MS = 30;
const SECONDS_PER_BLOCK = 12;
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

const word = (value: bigint): string => `0x${value.toString(16).padStart(64, "0")}`;

interface Query {
  readonly fromBlock: string;
  readonly toBlock: string;
}

const formatLog = (number: number, hash: string, timestamp: string) => ({
  ...{ address: TOKEN, topics: [TRANSFER, word(1n), word(2n)], data: word(BigInt(number)) },
  ...{ blockNumber: formatQuantity(BigInt(number)), blockHash: hash, transactionHash: word(BigInt(number)) },
  // As geth, reth, Erigon and Nethermind do: else forebay reads the header of each log.
  blockTimestamp: timestamp,
  ...{ transactionIndex: "0x0", logIndex: "0x0", removed: false },
});

/** Starts a stand-in for a provider with a long chain, which answers after 30 ms and refuses log queries over 2,000 blocks. */
export const startHistoryNode = async (): Promise<FakeNode> => {
  const height = HISTORY_BLOCKS + MORE_BLOCKS;
  const startSeconds = Math.floor(Date.now() / 1_000) - height * SECONDS_PER_BLOCK;
  const chain = createFakeChain({ chainId: 902, height, secondsPerBlock: SECONDS_PER_BLOCK, startSeconds });
  const getLogs = ([query]: readonly unknown[]) => {
    const { fromBlock, toBlock } = query as Query;
    const [from, to] = [Number(fromBlock), Number(toBlock)];
    if (to - from >= MAX_RANGE) {
      throw new FakeError(-32_602, `query exceeds max block range ${MAX_RANGE}`);
    }
    return chain.blocks
      .slice(from, Math.min(to, HISTORY_BLOCKS) + 1)
      .flatMap(({ number, hash, timestamp }) =>
        Number(number) % EVERY === 0 ? [formatLog(Number(number), hash, formatQuantity(timestamp))] : [],
      );
  };
  const node = await createFakeNode({ chain, handlers: { eth_getLogs: getLogs } });
  node.faults.delayMs = LATENCY_MS;
  return node;
};
