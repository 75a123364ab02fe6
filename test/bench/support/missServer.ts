import { createServer } from "node:http";

/** HTTP requests with an eth_call. */
let calls = 0;

/**
 * The node behind both proxies. It returns a balance at once, so that the bench measures the proxies.
 * It answers each message with the number of HTTP requests with an eth_call.
 */
const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", () => {
    calls += body.includes('"eth_call"') ? 1 : 0;
    const text = answer(JSON.parse(body));
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
    response.end(text);
  });
});

const HASH = `0x${"11".repeat(32)}`;
const RESULTS: Readonly<Record<string, unknown>> = {
  eth_call: "0x0de0b6b3a7640000",
  eth_chainId: "0x2105",
  eth_blockNumber: "0x64",
  eth_getBlockByNumber: {
    number: "0x64",
    hash: HASH,
    parentHash: `0x${"22".repeat(32)}`,
    timestamp: "0x6553f100",
    logsBloom: `0x${"00".repeat(256)}`,
    transactions: [],
  },
};

interface Asked {
  readonly id: unknown;
  readonly method: string;
}

const answerOne = ({ id, method }: Asked): unknown => ({
  jsonrpc: "2.0",
  id,
  result: RESULTS[method] ?? "0xde0b6b3a7640000",
});
const answer = (asked: Asked | Asked[]): string =>
  JSON.stringify(Array.isArray(asked) ? asked.map(answerOne) : answerOne(asked));

server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.send?.(typeof address === "object" && address !== null ? address.port : 0);
});
process.on("message", () => process.send?.(calls));
process.on("disconnect", () => process.exit());
