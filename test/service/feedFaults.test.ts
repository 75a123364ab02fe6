import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { keccak256 } from "viem";
import type { Devnet } from "../devnet/devnet.ts";
import type { Flashblock } from "../devnet/flashblock.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createFakeFeed } from "../support/fakes/fakeFeed.ts";
import { createFeedService, createTokenDevnet } from "../support/servers/feedService.ts";
import { createService } from "../support/servers/service.ts";

/** Wrong messages in front of a whole service. All faults at all places: `npm run long -- feed-faults`. */
const [alice] = devAccounts;
const TO = "0x00000000000000000000000000000000000000cc";

let devnet: Devnet;

before(async () => {
  ({ devnet } = await createTokenDevnet());
});
after(async () => {
  await devnet?.close();
});

const withWrongGas = (message: Flashblock): Flashblock => ({ ...message, diff: { ...message.diff, gas_used: "0x1" } });

/** Seals the block, and waits until the service serves it. */
const seal = async (url: string): Promise<void> => {
  await devnet.sealNow();
  const head = Number(await devnet.rpc("eth_blockNumber"));
  await until(async () => Number((await rpc(url, "eth_blockNumber")).body.result) === head, "the block is served");
};

const createClient = (url: string) => {
  const read = async (method: string, ...params: readonly unknown[]): Promise<unknown> => {
    const { body } = await rpc(url, method, params);
    assert.equal(body.error, undefined, `${method}: ${JSON.stringify(body.error)}`);
    return body.result;
  };
  const transfer = async (): Promise<string> => {
    assert.ok(alice);
    const raw = await alice.signTransaction({
      type: "eip1559",
      chainId: devnet.chainId,
      nonce: Number(await read("eth_getTransactionCount", alice.address, "pending")),
      to: TO,
      value: 1n,
      gas: 21_000n,
      maxFeePerGas: 20n * 10n ** 9n,
      maxPriorityFeePerGas: 1_000_000n,
    });
    return String(await read("eth_sendRawTransaction", raw));
  };
  /** Waits until the newest block of the view ends with that transaction. */
  const shows = (transaction: string, mode: string): Promise<void> =>
    until(async () => {
      const { headers, body } = await rpc(url, "eth_getBlockByNumber", ["pending", false]);
      const { transactions } = body.result as { readonly transactions: readonly string[] };
      return transactions.at(-1) === transaction && headers.get("x-forebay-pending") === mode;
    }, `${transaction} is shown as ${mode}`);
  return {
    /** Balance of the recipient and nonce of the sender. */
    values: async () => ({
      balance: BigInt(String(await read("eth_getBalance", TO, "pending"))),
      nonce: Number(await read("eth_getTransactionCount", alice?.address, "pending")),
    }),
    transfer,
    shows,
    /** Sends a transaction, which the next message shows. Returns its hash. */
    shown: async (mode: string): Promise<string> => {
      const hash = await transfer();
      await devnet.step();
      await shows(hash, mode);
      return hash;
    },
  };
};

test("a wrong message costs neither the verified ones before it nor the block after it", async (t) => {
  const service = await createFeedService(devnet);
  t.after(() => service.close());
  const socket = await connectSocket(service.url);
  t.after(() => socket.close());
  const sent = await socket.subscribe("newFlashblockTransactions");
  const client = createClient(service.url);
  // A service that starts inside a block shows the next one.
  await seal(service.url);
  await devnet.step();
  const first = await client.shown("live");
  const { balance } = await client.values();

  devnet.faults.alter(withWrongGas);
  const second = await client.transfer();
  await devnet.step();
  const third = await client.transfer();
  await devnet.step();
  await client.shows(first, "degraded");
  assert.deepEqual((await client.values()).balance, balance, "the prefix has its own state");
  const nonce = (await client.values()).nonce;

  await seal(service.url);
  await devnet.step();
  const fourth = await client.shown("live");
  const after = await client.values();
  assert.equal(after.balance, balance + 3n);
  assert.ok(after.nonce > nonce);
  const ours = [first, second, third, fourth];
  await until(async () => ours.every((hash) => sent.includes(hash)), "each transaction was announced");
  assert.equal(sent.length, new Set(sent).size, "each of them once");
});

/** Adds a transaction of Celo's type, which forebay cannot read. */
const withUnknownType = (message: Flashblock): Flashblock => ({
  ...message,
  diff: { ...message.diff, transactions: [...message.diff.transactions, "0x7b01"] },
});

test("a transaction of an unknown type hides nothing, and its block is unverified from it on", async (t) => {
  const service = await createFeedService(devnet);
  t.after(() => service.close());
  const client = createClient(service.url);
  await seal(service.url);
  await devnet.step();
  const first = await client.shown("live");
  devnet.faults.alter(withUnknownType);
  const second = await client.transfer();
  await devnet.step();
  const unknown = keccak256("0x7b01");
  await client.shows(unknown, "unverified");
  const third = await client.shown("unverified");
  const { body } = await rpc(service.url, "eth_getBlockByNumber", ["pending", true]);
  const { transactions } = body.result as { readonly transactions: readonly Readonly<Record<string, unknown>>[] };
  const types = new Map(transactions.map(({ hash, type }) => [hash, type]));
  assert.deepEqual(
    [first, second, unknown, third].map((hash) => types.get(hash)),
    ["0x2", "0x2", "0x7b", "0x2"],
  );
  await seal(service.url);
  await devnet.step();
  await client.shown("live");
});

test("a second feed that corrupts every message changes nothing, whichever copy comes first", async (t) => {
  const corrupt = await createFakeFeed();
  t.after(() => corrupt.close());
  const connected = corrupt.connected();
  const { feedUrl } = devnet;
  assert.ok(feedUrl);
  const service = await createService({
    nodes: [{ url: devnet.url, wsUrl: devnet.anvilWsUrl }],
    pending: { mode: "feed", feeds: [feedUrl, corrupt.url] },
    forks: "isthmus",
    quirks: { anvilDepositNonce: true },
  });
  t.after(() => service.close());
  await connected;
  const client = createClient(service.url);
  await seal(service.url);
  const relay = (message: Flashblock): void => corrupt.send(withWrongGas(message));
  devnet.events.on("message", relay);
  t.after(() => devnet.events.off("message", relay));
  await devnet.step();
  await client.shown("live");
  const { balance } = await client.values();
  for (let count = 1; count <= 3; count++) {
    await client.shown("live");
    assert.equal((await client.values()).balance, balance + BigInt(count));
  }
});
