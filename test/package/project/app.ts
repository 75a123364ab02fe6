// A program with forebay in its own process: see ../library.slow.test.ts. It ends by itself after it has closed everything.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import process from "node:process";
import { Readable } from "node:stream";
import { ConfigError, createForebay, type ForebayConfig, ProviderRpcError } from "forebay";
import { forebayTransport } from "forebay/viem";
import { createPublicClient, http, parseEther } from "viem";
import { foundry } from "viem/chains";

const KEY = "a key of this test";
/** SHA-256 of the key. */
const DIGEST = "05765796551c3ef82f0123f6eeea3802ceceb822d16e30600e93e69570fda5d7";
const ACCOUNT = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
/** PUSH1 0, PUSH1 0, REVERT, as the code of a creation. */
const REVERTS = "0x60006000fd";

const SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

const [node = "", dataDir = ""] = process.argv.slice(2);
const config: ForebayConfig = {
  chains: [{ name: "dev", nodes: [{ url: node }] }],
  access: { keys: [{ name: "wallet", sha256: DIGEST }] },
  server: { dataDir },
  log: { level: "silent" },
};

// @ts-expect-error A URL is a text: the types of the package know the options.
const wrong: ForebayConfig = { chains: [{ name: "dev", nodes: [{ url: 1 }] }] };
await assert.rejects(createForebay(wrong), (error) => error instanceof ConfigError && error.faults.length === 1);

const forebay = await createForebay(config);
await forebay.ready;
assert.equal(forebay.url, undefined);
assert.equal(forebay.opsUrl, undefined);

// EIP-1193.
assert.equal(await forebay.request({ method: "eth_chainId" }), "0x7a69");
assert.equal(await forebay.chain("dev").request({ method: "eth_chainId" }), "0x7a69");
assert.equal(await forebay.chain(foundry.id).request({ method: "eth_chainId" }), "0x7a69");
await assert.rejects(
  forebay.request({ method: "eth_call", params: [{ from: ACCOUNT, data: REVERTS }, "latest"] }),
  (error) => error instanceof ProviderRpcError && error.code === 3 && error.data === "0x",
);

// viem, without a port.
const client = createPublicClient({ chain: foundry, transport: forebayTransport(forebay) });
assert.ok((await client.getBalance({ address: ACCOUNT })) > parseEther("1000"));
assert.equal((await client.getBlock({ blockNumber: 0n })).number, 0n);

/** Turns a request of node:http into one of the Fetch standard. */
const toRequest = (message: IncomingMessage): Request => {
  const { method = "GET", url = "/", headers } = message;
  const hasBody = method !== "GET" && method !== "HEAD";
  return new Request(new URL(url, "http://localhost"), {
    method,
    headers: new Headers(Object.entries(headers).map(([name, value]) => [name, String(value)])),
    ...(hasBody && { body: Readable.toWeb(message) as ReadableStream, duplex: "half" }),
  });
};

// The same forebay behind a server of the program.
const server = createServer(async (message, response) => {
  const answer = await forebay.fetch(toRequest(message));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const overHttp = createPublicClient({ chain: foundry, transport: http(`${url}/dev/${KEY}`, { batch: true }) });
const [balance, chainId] = await Promise.all([overHttp.getBalance({ address: ACCOUNT }), overHttp.getChainId()]);
assert.equal(balance, await client.getBalance({ address: ACCOUNT }));
assert.equal(chainId, foundry.id);
assert.equal((await fetch(`${url}/dev`, { method: "POST", body: "{}" })).status, 401);
server.close();
server.closeAllConnections();
await once(server, "close");

await forebay.close();
await assert.rejects(forebay.request({ method: "eth_chainId" }), { code: 4900 });
assert.deepEqual(
  SIGNALS.map((signal) => process.listenerCount(signal)),
  [0, 0, 0],
);
process.stdout.write("done\n");
