import assert from "node:assert/strict";
import { test } from "node:test";
import type { RpcResponse } from "../../src/core/rpcSource.ts";
import { createContext } from "../support/builders/request.ts";
import { ANY, createSplit, range, readText } from "./askLogs.ts";
import { createFakeChain, fakeAddress, fakeHeads, plainScan } from "./fakeChain.ts";
import { createFakeLogNode, type LogsRequest, nodeError } from "./fakeLogNode.ts";

const BLOCKS = 20_000;
/** forebay learns the accepted range from the first half. The test counts the requests for the second half. */
const HALF = BLOCKS / 2;

const LOGS = [{ address: fakeAddress(1), topics: [], data: "0x" as const }];
/** A range of blocks with the text of its logs: to parse and compare 20,000 logs for each dialect takes seconds. */
interface Half {
  readonly blocks: ReturnType<typeof range>;
  readonly text: string;
}

const chain = createFakeChain(Array.from({ length: BLOCKS }, () => LOGS));

const halfOf = (from: number, to: number): Half => {
  const blocks = range(from, to);
  return { blocks, text: JSON.stringify(plainScan(chain, ANY, blocks)) };
};
const FIRST_HALF = halfOf(0, HALF - 1);
const SECOND_HALF = halfOf(HALF, BLOCKS - 1);

const blocks = ({ from, to }: LogsRequest) => to - from + 1;
const hex = (value: number) => `0x${value.toString(16)}`;

interface Dialect {
  readonly name: string;
  /** Highest number of blocks, and of logs, that the node accepts in one request. */
  readonly maxBlocks: number;
  readonly code: number;
  readonly message: (request: LogsRequest) => string;
}

const dialectOf = (name: string, maxBlocks: number, message: string, code = -32000): Dialect => ({
  name,
  maxBlocks,
  code,
  message: () => message,
});

const DIALECTS: readonly Dialect[] = [
  {
    name: "Alchemy",
    maxBlocks: 1_000,
    code: -32602,
    message: ({ from }) =>
      `Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range. Based on your parameters, this block range should work: [${hex(from)}, ${hex(from + 999)}]`,
  },
  {
    name: "Alchemy free",
    maxBlocks: 10,
    code: -32600,
    message: ({ from }) =>
      `You can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [${hex(from)}, ${hex(from + 9)}].`,
  },
  {
    name: "Infura",
    maxBlocks: 1_000,
    code: -32005,
    message: ({ from }) =>
      `query returned more than 1,000 results. Try with this block range [${hex(from)}, ${hex(from + 999)}].`,
  },
  dialectOf("QuickNode", 500, "eth_getLogs is limited to a 500 range", -32614),
  dialectOf("Base", 1_500, "eth_getLogs is limited to a 1,500 range", -32614),
  dialectOf("old Base", 1_000, "please limit the query to at most 1000 blocks"),
  dialectOf("Monad", 100, "eth_getLogs requests are limited to a 100 range", -32614),
  dialectOf("Chainstack", 700, "Block range limit exceeded. See more details at https://x/#evm-range-limits", -32602),
  dialectOf("Ankr", 1_000, "block range is too wide", -32600),
  dialectOf("Ankr distance", 1_000, "maximum [from, to] blocks distance: 1000", -32600),
  dialectOf("dRPC", 1_000, "ranges over 1k blocks are not supported on freetier", 35),
  dialectOf("Avalanche", 0x400, "requested too many blocks, maximum is set to 0x400"),
  dialectOf("PublicNode", 900, "exceed maximum block range: 900", -32701),
  dialectOf("1RPC", 50, "eth_getLogs is limited to 0 - 50 blocks range", -32602),
  dialectOf("Blast", 1_200, "exceeds the range allowed for your plan (1920 > 1200)"),
  dialectOf("BlockPI", 1_024, "eth_getLogs is limited to 1024 block"),
  dialectOf("Merkle", 1_000, "eth_getLogs range is too large, max is 1k blocks"),
  dialectOf("Harmony", 1_024, "query must be smaller than size 1024"),
  {
    name: "reth",
    maxBlocks: 1_000,
    code: -32602,
    // The proposed range may be the requested range.
    message: ({ from, to }) => `query exceeds max results 1000, retry with the range ${from}-${to}`,
  },
  dialectOf("Nethermind", 800, "Too many logs requested. Max logs per response is 800.", -32005),
  dialectOf("Nitro", 600, "logs matched by query exceeds limit of 600"),
  dialectOf("LlamaRPC", 640, "query exceeds max results"),
  dialectOf("Moonriver", 1_024, "block range is too wide (maximum 1024)"),
  dialectOf("Swell", 1_000, "block range greater than 1000 max"),
  dialectOf("Alchemy slow", 960, "Query timeout exceeded. Consider reducing your block range"),
  dialectOf("LinkPool", 960, "request timed out", -32002),
];

const isComplete = async (answer: RpcResponse, { text }: Half): Promise<void> => {
  const actual = await readText(answer);
  assert.ok(actual === text, `${actual.length} characters, expected ${text.length}`);
};

for (const dialect of DIALECTS) {
  test(`${dialect.name}: responses are complete, and at most twice the fewest requests follow`, async () => {
    const node = createFakeLogNode({
      chain,
      maxLogRanges: 2,
      onLogs: (request) =>
        blocks(request) > dialect.maxBlocks ? nodeError(dialect.message(request), dialect.code) : undefined,
    });
    const split = createSplit([node]);
    const context = createContext({ heads: fakeHeads(chain, { finalized: BLOCKS - 1, ring: 1 }) });
    await isComplete(await split.request(ANY, FIRST_HALF.blocks, context), FIRST_HALF);
    const before = node.logsRequests.length;
    await isComplete(await split.request(ANY, SECOND_HALF.blocks, context), SECOND_HALF);
    const ratio = (node.logsRequests.length - before) / Math.ceil(HALF / dialect.maxBlocks);
    // A refused range is halved, and one in ten is larger than any before.
    assert.ok(ratio <= 2, `${ratio.toFixed(2)} times the optimum`);
  });
}
