import assert from "node:assert/strict";
import { test } from "node:test";
import { createContext } from "../support/builders/request.ts";
import { ANY, createSplit, range, readLogs } from "./askLogs.ts";
import { createFakeChain, fakeAddress, fakeHeads, plainScan } from "./fakeChain.ts";
import { createFakeLogNode, type LogsRequest, nodeError } from "./fakeLogNode.ts";

const BLOCKS = 40_000;
/** Half of it teaches, half of it is counted. */
const HALF = BLOCKS / 2;

const chain = createFakeChain(
  Array.from({ length: BLOCKS }, () => [{ address: fakeAddress(1), topics: [], data: "0x" as const }]),
);

const blocks = ({ from, to }: LogsRequest) => to - from + 1;
const hex = (value: number) => `0x${value.toString(16)}`;

interface Dialect {
  readonly name: string;
  /** Blocks, and as many logs, that the node takes at once. */
  readonly takes: number;
  readonly code: number;
  readonly says: (request: LogsRequest) => string;
  readonly data?: string;
}

const told = (name: string, takes: number, says: string, code = -32000): Dialect => ({
  name,
  takes,
  code,
  says: () => says,
});

const DIALECTS: readonly Dialect[] = [
  {
    name: "Alchemy",
    takes: 1_000,
    code: -32602,
    says: ({ from }) =>
      `Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range. Based on your parameters, this block range should work: [${hex(from)}, ${hex(from + 999)}]`,
  },
  {
    name: "Alchemy free",
    takes: 10,
    code: -32600,
    says: ({ from }) =>
      `You can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [${hex(from)}, ${hex(from + 9)}].`,
  },
  {
    name: "Infura",
    takes: 1_000,
    code: -32005,
    says: ({ from }) =>
      `query returned more than 1,000 results. Try with this block range [${hex(from)}, ${hex(from + 999)}].`,
  },
  told("QuickNode", 500, "eth_getLogs is limited to a 500 range", -32614),
  told("Base", 1_500, "eth_getLogs is limited to a 1,500 range", -32614),
  told("old Base", 1_000, "please limit the query to at most 1000 blocks"),
  told("Monad", 100, "eth_getLogs requests are limited to a 100 range", -32614),
  told("Chainstack", 700, "Block range limit exceeded. See more details at https://x/#evm-range-limits", -32602),
  told("Ankr", 1_000, "block range is too wide", -32600),
  told("Ankr distance", 1_000, "maximum [from, to] blocks distance: 1000", -32600),
  told("dRPC", 1_000, "ranges over 1k blocks are not supported on freetier", 35),
  told("Avalanche", 0x400, "requested too many blocks, maximum is set to 0x400"),
  told("PublicNode", 900, "exceed maximum block range: 900", -32701),
  told("1RPC", 50, "eth_getLogs is limited to 0 - 50 blocks range", -32602),
  told("Blast", 1_200, "exceeds the range allowed for your plan (1920 > 1200)"),
  told("BlockPI", 1_024, "eth_getLogs is limited to 1024 block"),
  told("Merkle", 1_000, "eth_getLogs range is too large, max is 1k blocks"),
  told("Harmony", 1_024, "query must be smaller than size 1024"),
  {
    name: "reth",
    takes: 1_000,
    code: -32602,
    // The range that it proposes may be the one that was asked for.
    says: ({ from, to }) => `query exceeds max results 1000, retry with the range ${from}-${to}`,
  },
  told("Nethermind", 800, "Too many logs requested. Max logs per response is 800.", -32005),
  told("Nitro", 600, "logs matched by query exceeds limit of 600"),
  told("LlamaRPC", 640, "query exceeds max results"),
  told("Moonriver", 1_024, "block range is too wide (maximum 1024)"),
  told("Swell", 1_000, "block range greater than 1000 max"),
  told("Alchemy slow", 960, "Query timeout exceeded. Consider reducing your block range"),
  told("LinkPool", 960, "request timed out", -32002),
];

for (const dialect of DIALECTS) {
  test(`${dialect.name}: whole answers, and few requests once its limit is learned`, async () => {
    const node = createFakeLogNode({
      chain,
      onLogs: (request) =>
        blocks(request) > dialect.takes
          ? nodeError(dialect.says(request), dialect.code, "other", dialect.data)
          : undefined,
    });
    const split = createSplit([node], { spansPerNode: () => 2 });
    const context = createContext({ heads: fakeHeads(chain, { finalized: BLOCKS - 1, ring: 1 }) });
    const taught = await split.request(ANY, range(0, HALF - 1), context);
    assert.deepEqual(await readLogs(taught), plainScan(chain, ANY, range(0, HALF - 1)));
    const before = node.logsRequests.length;
    const answer = await split.request(ANY, range(HALF, BLOCKS - 1), context);
    assert.deepEqual(await readLogs(answer), plainScan(chain, ANY, range(HALF, BLOCKS - 1)));
    const ratio = (node.logsRequests.length - before) / Math.ceil(HALF / dialect.takes);
    assert.ok(ratio <= 1.25, `${ratio.toFixed(2)} times the optimum`);
  });
}
