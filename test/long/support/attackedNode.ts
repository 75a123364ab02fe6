import { createFakeNode } from "../../support/fakes/fakeNode.ts";
import { forwardTo, startFront } from "../../support/fakes/front.ts";
import { IN_EACH_BLOCK } from "./inEachBlock.ts";

/**
 * A process with a node whose own work is small, so that a run measures forebay. It sends its URL to its parent, and ends with it.
 * The results of the methods that the run calls often exist before it starts.
 */
const LARGE_BYTES = 2_000_000;
/** Less than 64 KiB. */
const SMALL_BYTES = 60_000;
const RESULTS: Readonly<Record<string, string>> = {
  custom_large: `"0x${"ab".repeat(LARGE_BYTES / 2)}"`,
  custom_small: `"0x${"ab".repeat(SMALL_BYTES / 2)}"`,
  custom_read: "1",
  eth_getBalance: '"0x1"',
};

/** A block of this many logs, and of one receipt of 1.9 MB, is mined after each of these times. */
const BLOCK_MS = 2_000;
const LOGS = 800;
const RECEIPT_BYTES = 1_900_000;
const NO_BLOOM = `0x${"00".repeat(256)}`;
const FULL_BLOOM = `0x${"ff".repeat(256)}`;

const placeOf = (blockHash: unknown) => ({
  ...{ blockHash, blockNumber: `0x${node.chain.byHash(blockHash)?.number.toString(16)}` },
  ...{ transactionHash: IN_EACH_BLOCK, transactionIndex: "0x0" },
});

const logsOf = ([filter]: readonly unknown[]): readonly object[] => {
  const { blockHash }: { blockHash?: unknown } = Object(filter);
  const data = `0x${"22".repeat(96)}`;
  const log = { address: `0x${"aa".repeat(20)}`, topics: [IN_EACH_BLOCK], data, removed: false, ...placeOf(blockHash) };
  return Array.from({ length: LOGS }, (_, index) => ({ ...log, logIndex: `0x${index.toString(16)}` }));
};

/** The fake node answers batches, which executions send. */
const node = await createFakeNode({
  handlers: {
    eth_getLogs: logsOf,
    eth_getBlockByHash: ([hash, isFull]) => ({
      ...node.chain.byHash(hash)?.json,
      transactions: [isFull === true ? { hash: IN_EACH_BLOCK } : IN_EACH_BLOCK],
    }),
    eth_getBlockReceipts: ([hash]) => [{ ...placeOf(hash), status: "0x1", data: "x".repeat(RECEIPT_BYTES) }],
    eth_getTransactionCount: () => "0x0",
    eth_getCode: () => "0x",
    eth_getStorageAt: () => `0x${"0".repeat(64)}`,
  },
});
const front = await startFront(async (body) => {
  const parsed: unknown = JSON.parse(body);
  const { id = null, method = "" }: { id?: unknown; method?: string } = Object(parsed);
  const result = RESULTS[method];
  if (result !== undefined) {
    return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
  }
  const forwarded = await forwardTo(node.url, body);
  // The blooms show that each block may have logs.
  return { ...forwarded, text: forwarded.text.replaceAll(NO_BLOOM, FULL_BLOOM) };
});
setInterval(() => node.chain.mine(), BLOCK_MS);
process.on("disconnect", () => process.exit());
process.send?.({ url: front.url });
