import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { keccak256 } from "viem";
import { createDevnet, type Devnet } from "../devnet/devnet.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { connectSocket, type SocketClient } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { ActorSigner, ANVIL_KEYS } from "../support/state/actor.ts";

const KIND = "transactionInclusion";
const TO = `0x${"be".repeat(20)}` as const;
const READER = "a-key-that-may-not-write";
const WRITER = "a-key-that-may-do-all";
const FINAL_AFTER = 3;

let devnet: Devnet;
let service: Service;
let socket: SocketClient;
let signer: ActorSigner;

const keyOf = (name: string, text: string) => ({
  name,
  sha256: createHash("sha256").update(text).digest("hex"),
});

before(async () => {
  devnet = await createDevnet({ manual: true });
  service = await createService(
    {
      nodes: [{ url: devnet.url, wsUrl: devnet.anvilWsUrl }],
      pending: { feeds: [devnet.feedUrl ?? ""] },
      quirks: { anvilDepositNonce: true },
      finality: { depth: FINAL_AFTER },
    },
    {
      access: {
        keys: [keyOf("writer", WRITER), { ...keyOf("reader", READER), deny: ["eth_sendRawTransaction"] }],
      },
    },
  );
  socket = await connectSocket(service.url, { "x-api-key": WRITER });
  socket.socket.on("message", (text) => {
    const { params } = JSON.parse(String(text));
    if (params !== undefined) {
      listOf(params.subscription).push(params.result);
    }
  });
  signer = new ActorSigner(devnet.chainId, ANVIL_KEYS);
});
after(async () => {
  await socket?.close();
  await service?.close();
  await devnet?.close();
});

interface Notification {
  readonly status: string;
  readonly blockHash: string;
  readonly blockNumber: string;
  readonly receipt: { readonly transactionHash: string; readonly blockHash: string } | null;
}

/** By subscription. A notification can come with the response that has the id. */
const lists = new Map<string, Notification[]>();

const listOf = (id: string): Notification[] => {
  const list = lists.get(id) ?? [];
  lists.set(id, list);
  return list;
};

/** Begins a subscription. Returns its notifications, and whether it has ended. */
const subscribe = async (option: unknown) => {
  const { result, error } = await socket.call("eth_subscribe", KIND, option);
  assert.equal(error, undefined);
  const list = listOf(String(result));
  const statuses = () => list.map(({ status }) => status);
  return {
    list,
    statuses,
    until: (...expected: readonly string[]) =>
      until(() => statuses().length >= expected.length, expected.join()).then(() =>
        assert.deepEqual(statuses(), expected),
      ),
    hasEnded: async () => (await socket.call("eth_unsubscribe", result)).error?.message === "subscription not found",
  };
};

const headNumber = async (): Promise<number> =>
  Number((await rpc(service.url, "eth_blockNumber", [], { "x-api-key": WRITER })).body.result);

/** Sends the first two messages of a block. The second one has the transactions. */
const preconfirm = async (): Promise<void> => {
  await devnet.step();
  await devnet.step();
};

/** Seals a block, and waits until it is served. */
const seal = async (): Promise<void> => {
  const before = await headNumber();
  await devnet.sealNow();
  await until(async () => (await headNumber()) > before, "a new block");
};

const sent = () => metric(service.opsUrl, "forebay_upstream_calls_total", 'method="eth_sendRawTransaction"');

test("a transaction that is sent with its subscription is pre-confirmed, included, replaced and final, and sent once", async () => {
  const raw = await signer.sign({ kind: "call", from: 0, to: TO, value: 7n });
  const hash = keccak256(raw);
  const all = await subscribe({ transaction: raw, includeReorgs: true });
  const first = await subscribe({ hash });
  assert.equal(await sent(), 1);

  await preconfirm();
  await first.until("preconfirmed");
  await seal();
  await first.until("preconfirmed", "included");
  assert.ok(await first.hasEnded());
  const included = first.list[1];
  const { body } = await rpc(devnet.anvilUrl, "eth_getTransactionReceipt", [hash]);
  assert.equal(included?.blockHash, Reflect.get(Object(body.result), "blockHash"));
  assert.equal(included?.receipt?.blockHash, included?.blockHash);
  assert.equal(included?.receipt?.transactionHash, hash);

  const late = await subscribe({ hash });
  await late.until("included");
  assert.ok(await late.hasEnded());
  const again = await subscribe({ transaction: raw });
  await again.until("included");
  assert.ok(await again.hasEnded(), "a transaction that is included already can be sent again");

  // The new block has the transaction again.
  await devnet.rpc("anvil_reorg", 1, [[raw, 0]]);
  await all.until("preconfirmed", "included", "reorged", "included");
  assert.notEqual(all.list[3]?.blockHash, included?.blockHash);
  for (let count = 0; count < FINAL_AFTER; count++) {
    await seal();
  }
  await all.until("preconfirmed", "included", "reorged", "included", "finalized");
  assert.ok(await all.hasEnded());
  assert.equal(await metric(service.opsUrl, "forebay_subscriptions", `kind="${KIND}"`), 0);
});

test("a transaction that the nodes refuse, and one of a client that may not send any, begin no subscription", async () => {
  const { error: refused } = await socket.call("eth_subscribe", KIND, { transaction: "0x02c0" });
  assert.ok(refused !== undefined && refused.code !== -32_602, JSON.stringify(refused));
  const before = await sent();
  const reader = await connectSocket(service.url, { "x-api-key": READER });
  const raw = await signer.sign({ kind: "call", from: 1, to: TO, value: 7n });
  const { error } = await reader.call("eth_subscribe", KIND, { transaction: raw });
  assert.deepEqual(error, { code: -32_601, message: "the method eth_sendRawTransaction is not allowed here" });
  assert.equal(await sent(), before);
  const { result } = await reader.call("eth_subscribe", KIND, { hash: keccak256(raw) });
  assert.equal(typeof result, "string");
  await reader.close();
});
