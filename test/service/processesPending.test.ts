import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createDevnet, type Devnet } from "../devnet/devnet.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { answerOverNewConnection, callOverNewConnection } from "../support/clients/freshConnection.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { type Processes, startProcesses } from "../support/servers/processes.ts";

const [alice] = devAccounts;
const TO = "0x00000000000000000000000000000000000000cc";
/** Enough that both processes answer. */
const CONNECTIONS = 6;

let devnet: Devnet;
let forebay: Processes;
const ends: (() => Promise<void>)[] = [];

before(async () => {
  devnet = await createDevnet({ manual: true, generation: "f" });
  assert.ok(devnet.feedUrl);
  await devnet.step();
  await devnet.sealNow();
  forebay = await startProcesses(
    { after: (end) => ends.push(end) },
    {
      chains: [
        {
          name: "chain",
          nodes: [{ url: devnet.url, wsUrl: devnet.anvilWsUrl }],
          pending: { mode: "feed", feeds: [devnet.feedUrl] },
          forks: "isthmus",
          quirks: { anvilDepositNonce: true },
        },
      ],
    },
  );
});
after(async () => {
  await Promise.all(ends.map((end) => end()));
  await devnet?.close();
});

const call = (method: string, ...params: readonly unknown[]) => callOverNewConnection(forebay.url, method, params);

/** Sends the same call to all processes. */
const callAll = (method: string, ...params: readonly unknown[]) =>
  Promise.all(Array.from({ length: CONNECTIONS }, () => call(method, ...params)));

const sendTransfer = async (): Promise<string> => {
  assert.ok(alice);
  const nonce = Number(await call("eth_getTransactionCount", alice.address, "pending"));
  const raw = await alice.signTransaction({
    type: "eip1559",
    chainId: devnet.chainId,
    nonce,
    to: TO,
    value: 7n,
    gas: 21_000n,
    maxFeePerGas: 20n * 10n ** 9n,
    maxPriorityFeePerGas: 1_000_000n,
  });
  return String(await call("eth_sendRawTransaction", raw));
};

test("all processes serve one pending block, its state and its subscriptions", async (t) => {
  assert.ok(alice);
  const sockets = await Promise.all([1, 2, 3, 4].map(() => connectSocket(forebay.url)));
  t.after(() => Promise.all(sockets.map((socket) => socket.close())));
  const lists = await Promise.all(sockets.map((socket) => socket.subscribe("newFlashblockTransactions")));
  const before = Number(await call("eth_getTransactionCount", alice.address, "pending"));

  const hash = await sendTransfer();
  const nonces = await callAll("eth_getTransactionCount", alice.address, "pending");
  assert.deepEqual(
    new Set(nonces.map(Number)),
    new Set([before + 1]),
    "every process counts the submitted transaction",
  );

  // The first message of a block has its deposit alone.
  await devnet.step();
  const { diff } = await devnet.step();
  await until(
    async () => Object(await call("eth_getBlockByNumber", "pending", false)).hash === diff.block_hash,
    "the message is served",
  );
  for (const block of await callAll("eth_getBlockByNumber", "pending", false)) {
    assert.equal(Object(block).hash, diff.block_hash);
  }
  await until(async () => BigInt(String(await call("eth_getBalance", TO, "pending"))) === 7n, "it is executed");
  assert.deepEqual(new Set(await callAll("eth_getBalance", TO, "pending")), new Set(["0x7"]));
  const receipts = await callAll("eth_getTransactionReceipt", hash);
  assert.deepEqual(new Set(receipts.map((receipt) => Object(receipt).transactionHash)), new Set([hash]));
  const simulated = await callAll(
    "eth_simulateV1",
    { blockStateCalls: [{ calls: [{ from: TO, to: TO, value: "0x7" }] }] },
    "pending",
  );
  assert.deepEqual(new Set(simulated.map((blocks) => Object(blocks)[0].calls[0].status)), new Set(["0x1"]));
  for (const list of lists) {
    await until(() => list.includes(hash), "the subscriber has the transaction");
  }
});

test("the pending block never goes back over changing connections, from message to message and from block to block", async () => {
  let highest = 0;
  const read = async (): Promise<void> => {
    const seen = highest;
    const { result, headers } = await answerOverNewConnection(forebay.url, "eth_getBlockByNumber", ["pending", false]);
    // A feed that is silent for too long is stale, and then the newest sealed block answers.
    if (headers["x-forebay-pending"] !== "live") {
      return;
    }
    const { number, transactions } = Object(result);
    const position = Number(number) * 1_000 + transactions.length;
    assert.ok(position >= seen, `${position} after ${seen}`);
    highest = Math.max(highest, position);
  };
  let isStepping = true;
  const reading = Promise.all(
    [1, 2, 3, 4].map(async () => {
      while (isStepping) {
        await read();
      }
    }),
  );
  for (let block = 0; block < 5; block++) {
    for (let message = 0; message < 3; message++) {
      await sendTransfer();
      await devnet.step();
    }
    await devnet.sealNow();
  }
  isStepping = false;
  await reading;
});
