import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { listen } from "../../support/servers/ports.ts";

/** The chain of the fake node of the log benches: blocks 0 to `head`, with `logsPerBlock` logs in every `every`-th one. */
export interface LogsNodeOptions {
  readonly head: number;
  readonly every: number;
  readonly logsPerBlock: number;
  readonly latencyMs: number;
  readonly maxBlocks: number;
  readonly maxResults: number;
}

const word = (value: number, pad: string): string => value.toString(16).padStart(64, pad);

const formatLog = (block: number, index: number): string =>
  `{"address":"0x${"ab".repeat(20)}","topics":["0x${word(1, "d")}","0x${word(index, "0")}"],"data":"0x${word(block, "0")}",` +
  `"blockNumber":"0x${block.toString(16)}","transactionHash":"0x${word(block * 1000 + index, "e")}",` +
  `"transactionIndex":"0x${index.toString(16)}","blockHash":"0x${word(block, "a")}","logIndex":"0x${index.toString(16)}",` +
  `"removed":false,"blockTimestamp":"0x${(1_700_000_000 + block * 2).toString(16)}"}`;

/** Formats the logs of one block as JSON text, joined by commas. */
export const formatBlockLogs = (block: number, { every, logsPerBlock }: LogsNodeOptions): string =>
  block % every === 0 ? Array.from({ length: logsPerBlock }, (_, index) => formatLog(block, index)).join(",") : "";

const formatBlock = (block: number) => ({
  number: `0x${block.toString(16)}`,
  hash: `0x${word(block, "a")}`,
  parentHash: `0x${word(block - 1, "a")}`,
  timestamp: `0x${(1_700_000_000 + block * 2).toString(16)}`,
  logsBloom: `0x${"ff".repeat(256)}`,
  transactions: [],
});

const getLogs = (from: number, to: number, options: LogsNodeOptions): string => {
  if (to - from + 1 > options.maxBlocks) {
    throw new Error(`eth_getLogs is limited to a ${options.maxBlocks} range`);
  }
  const blocks = Math.floor(to / options.every) - Math.floor((from - 1) / options.every);
  if (blocks * options.logsPerBlock > options.maxResults) {
    throw new Error(`query returned more than ${options.maxResults} results`);
  }
  const logs: string[] = [];
  for (let block = from; block <= to; block++) {
    if (block % options.every === 0) {
      logs.push(formatBlockLogs(block, options));
    }
  }
  return `[${logs.join(",")}]`;
};

interface NodeCall {
  readonly method: string;
  readonly params: readonly (string & { readonly fromBlock?: string; readonly toBlock?: string })[];
}

const answer = ({ method, params: [first] }: NodeCall, options: LogsNodeOptions): string => {
  if (method === "eth_getLogs") {
    return getLogs(Number(first?.fromBlock), Number(first?.toBlock), options);
  }
  if (method === "eth_getBlockReceipts") {
    return '[{"status":"0x1"}]';
  }
  return JSON.stringify(formatBlock(Number(first)));
};

const startLogsNode = async (options: LogsNodeOptions): Promise<number> => {
  let requests = 0;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) {
      body += chunk;
    }
    if (request.url === "/requests") {
      return response.end(String(requests));
    }
    const call: NodeCall = JSON.parse(body);
    if (call.method === "eth_getLogs") {
      requests++;
    }
    if (options.latencyMs > 0) {
      await delay(options.latencyMs);
    }
    try {
      response.end(`{"jsonrpc":"2.0","id":1,"result":${answer(call, options)}}`);
    } catch (error) {
      const message = error instanceof Error ? error.message : "";
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32005, message } }));
    }
  });
  return listen(server);
};

if (import.meta.main) {
  process.once("message", async (options: LogsNodeOptions) => process.send?.(await startLogsNode(options)));
  process.on("disconnect", () => process.exit());
}
