import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type TestContext, test } from "node:test";
import { mnemonicToAccount } from "viem/accounts";
import { type Anvil, startAnvil } from "../devnet/anvil.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { type Lie, startLyingNode } from "../support/fakes/lyingNode.ts";
import { followAnvil, followHead } from "../support/servers/followHead.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";
import { StandInChain } from "../world/state/standInChain.ts";

const BEHIND = 3;
const SENDER = mnemonicToAccount("test test test test test test test test test test test junk");
const RECEIVER = `0x${"cc".repeat(20)}` as const;
/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
/** Requests of a key with confirmations, and those of another key. */
const CAREFUL = { "x-api-key": "a-key-of-a-careful-client" };
const OTHER = { "x-api-key": "a-key-of-another-client" };
const HEADER = "x-forebay-confirmations";

const keyOf = (name: string, headers: typeof CAREFUL, confirmations: number) => ({
  ...{ name, confirmations, sha256: createHash("sha256").update(headers["x-api-key"]).digest("hex") },
});
const ACCESS = { access: { keys: [keyOf("careful", CAREFUL, BEHIND), keyOf("other", OTHER, 0)] } };

interface Rig {
  readonly anvil: Anvil;
  readonly service: Service;
  ask(method: string, ...params: readonly unknown[]): Promise<unknown>;
  mine(): Promise<void>;
}

/** A service in front of a node that seals each transaction. `ask` asks as a client whose key wants three confirmations. */
const start = async (t: TestContext): Promise<Rig> => {
  const anvil = await startAnvil(["--chain-id", "31337"]);
  await anvil.call("anvil_mine", "0x5");
  const service = await createService({ nodes: [{ url: anvil.url }], blockTimeMs: LONG_MS }, ACCESS);
  t.after(async () => {
    await service.close();
    await anvil.close();
  });
  return rigOf(anvil, service);
};

const rigOf = (anvil: Anvil, service: Service): Rig => {
  const follow = () => followAnvil(service, anvil);
  const mine = async () => {
    await anvil.call("anvil_mine", "0x1");
    await follow();
  };
  const ask = async (method: string, ...params: readonly unknown[]) => {
    const { body, text } = await rpc(service.url, method, params, CAREFUL);
    assert.equal(body.error, undefined, text);
    return body.result;
  };
  return { anvil, service, ask, mine };
};

const send = async ({ anvil, service }: Rig, nonce: number, url = service.url) => {
  const raw = await SENDER.signTransaction({
    ...{ type: "eip1559", chainId: 31_337, nonce, to: RECEIVER, value: 1n, gas: 21_000n },
    ...{ maxFeePerGas: 10_000_000_000n, maxPriorityFeePerGas: 1n },
  });
  const { body, text } = await rpc(url, "eth_sendRawTransaction", [raw], CAREFUL);
  assert.equal(typeof body.result, "string", text);
  await until(async () => (await anvil.call("eth_getTransactionReceipt", body.result)) !== null, "a receipt");
  await followAnvil(service, anvil);
  return String(body.result);
};

test("a client that wants three confirmations reads the chain of three blocks ago", async (t) => {
  const rig = await start(t);
  const { anvil, service, ask, mine } = rig;
  const head = Number(await anvil.call("eth_blockNumber"));
  const hash = await send(rig, 0);
  assert.equal(Number(await ask("eth_blockNumber")), head + 1 - BEHIND);
  const block = (await anvil.call("eth_getBlockByNumber", "latest", false)) as { readonly hash: string };
  const byHash: readonly (readonly [string, ...unknown[]])[] = [
    ["eth_getBlockByHash", block.hash, false],
    ["eth_getBlockTransactionCountByHash", block.hash],
    ["eth_getUncleCountByBlockHash", block.hash],
    ["eth_getTransactionByBlockHashAndIndex", block.hash, "0x0"],
    ["eth_getBlockReceipts", block.hash],
    ["eth_getBlockReceipts", { blockHash: block.hash }],
  ];
  // Nothing of the newest three blocks is shown.
  const balance = () => ask("eth_getBalance", RECEIVER, "latest");
  for (let confirmations = 0; confirmations < BEHIND; confirmations++) {
    assert.equal(await balance(), "0x0");
    assert.equal(await ask("eth_getBalance", RECEIVER, "pending"), "0x0");
    assert.equal(await ask("eth_getTransactionReceipt", hash), null);
    assert.equal(await ask("eth_getTransactionByHash", hash), null);
    assert.equal(await ask("eth_getBlockByNumber", `0x${(head + 1).toString(16)}`, false), null);
    assert.equal(await ask("eth_getTransactionCount", SENDER.address, "latest"), "0x0");
    for (const [method, ...params] of byHash) {
      assert.equal(await ask(method, ...params), null, method);
    }
    const fees = (await ask("eth_feeHistory", "0x1", "pending", [])) as { readonly oldestBlock: string };
    assert.equal(Number(fees.oldestBlock), head + 1 + confirmations - BEHIND);
    await mine();
  }
  for (const [method, ...params] of byHash) {
    assert.notEqual(await ask(method, ...params), null, method);
  }
  assert.equal(await balance(), "0x1");
  assert.equal(((await ask("eth_getTransactionReceipt", hash)) as Record<string, unknown>).transactionHash, hash);
  assert.equal(await ask("eth_getTransactionCount", SENDER.address, "latest"), "0x1");
  for (const tag of ["latest", "pending", "safe", "finalized"]) {
    const { number } = (await ask("eth_getBlockByNumber", tag, false)) as { readonly number: string };
    assert.ok(Number(number) <= head + 1, tag);
  }
  // Other clients see the head.
  assert.equal(Number((await rpc(service.url, "eth_blockNumber", [], OTHER)).body.result), head + 1 + BEHIND);
});

test("the first request of a key with 64 confirmations after a start reads the blocks that these need", async (t) => {
  const anvil = await startAnvil(["--chain-id", "31337"]);
  await anvil.call("anvil_mine", "0xc8");
  const access = { access: { keys: [keyOf("careful", CAREFUL, 64)] } };
  const service = await createService({ nodes: [{ url: anvil.url }], blockTimeMs: LONG_MS }, access);
  t.after(async () => {
    await service.close();
    await anvil.close();
  });
  const { ask } = rigOf(anvil, service);
  assert.equal(Number(await ask("eth_blockNumber")), 200 - 64);
});

test("the pending nonce counts transactions that have no confirmations yet", async (t) => {
  const rig = await start(t);
  await send(rig, 0);
  await send(rig, 1);
  assert.equal(await rig.ask("eth_getTransactionCount", SENDER.address, "latest"), "0x0");
  assert.equal(await rig.ask("eth_getTransactionCount", SENDER.address, "pending"), "0x2");
});

test("the pending nonce is not that of an older block because a node lags", async (t) => {
  const anvil = await startAnvil(["--chain-id", "31337"]);
  await anvil.call("anvil_mine", "0x5");
  const node = await startLyingNode(t, anvil.url);
  const buildsNoBlock: Lie = {
    name: "buildsNoBlock",
    methods: ["eth_getBlockByNumber"],
    result: (result, { params }, ask) =>
      params[0] === "pending" ? ask("eth_getBlockByNumber", ["latest", params[1]]) : result,
  };
  node.lies = [buildsNoBlock];
  const service = await createService({ nodes: [{ url: node.url }], blockTimeMs: LONG_MS }, ACCESS);
  t.after(async () => {
    await service.close();
    await anvil.close();
  });
  const rig = rigOf(anvil, service);
  // Not through forebay, which would know of them.
  await send(rig, 0, anvil.url);
  await send(rig, 1, anvil.url);
  const head = (await anvil.call("eth_getBlockByNumber", "latest", false)) as { readonly [name: string]: string };
  let isLagging = true;
  const lags: Lie = {
    name: "lags",
    methods: ["eth_getTransactionCount"],
    response: ({ id, ...answer }, { params }) => {
      const refuse = (message: string) => ({ jsonrpc: "2.0", id, error: { code: -32_000, message } });
      if (params[1] === "pending") {
        return refuse("pending block is not supported");
      }
      const isNewest = [JSON.stringify({ blockHash: head.hash }), `"${head.number}"`].includes(
        JSON.stringify(params[1]),
      );
      return isNewest && isLagging ? refuse("header not found") : { ...answer, id };
    },
  };
  node.lies = [buildsNoBlock, lags];
  const nonce = ["eth_getTransactionCount", [SENDER.address, "pending"], CAREFUL] as const;
  // The first request that names pending begins the probe that finds out that the node builds no block.
  await until(
    async () => (await rpc(service.url, ...nonce)).body.error?.message === "header not found",
    "the node's pending block is known to be its newest one",
  );
  isLagging = false;
  assert.equal((await rpc(service.url, ...nonce)).body.result, "0x2");
});

test("polls of filters report a block once it has the confirmations of the key", async (t) => {
  const { anvil, ask, mine } = await start(t);
  const filter = await ask("eth_newBlockFilter");
  for (let confirmations = 0; confirmations < BEHIND; confirmations++) {
    await mine();
  }
  const { hash } = (await anvil.call("eth_getBlockByNumber", "0x6", false)) as { readonly hash: string };
  assert.equal(((await ask("eth_getFilterChanges", filter)) as readonly string[]).includes(hash), false);
  await mine();
  assert.deepEqual(await ask("eth_getFilterChanges", filter), [hash]);
  assert.deepEqual(await ask("eth_getFilterChanges", filter), []);
});

test("a subscription of a key with confirmations is an error that says why, and other keys have theirs", async (t) => {
  const { service, mine } = await start(t);
  const [careful, other] = [await connectSocket(service.url, CAREFUL), await connectSocket(service.url, OTHER)];
  t.after(() => Promise.all([careful.close(), other.close()]));
  const blocks = await other.subscribe("newHeads");
  for (const kind of ["newHeads", "logs", "transactionReceipts"]) {
    await assert.rejects(careful.subscribe(kind), /a key with confirmations has no subscriptions/, kind);
  }
  await mine();
  await other.atLeast(blocks, 1);
});

test("the header is refused, because without it `latest` would be the head", async (t) => {
  const { service } = await start(t);
  for (const header of ["3", "0", "65", "two"]) {
    for (const key of [CAREFUL, OTHER]) {
      const { status, body } = await rpc(service.url, "eth_blockNumber", [], { ...key, [HEADER]: header });
      assert.equal(status, 400, header);
      assert.match(String(body.error?.message), /x-forebay-confirmations is not supported: use a key/);
    }
  }
  for (const headers of [{ [HEADER]: "3" }, { "x-forebay-require": "checked" }]) {
    await assert.rejects(connectSocket(service.url, { ...OTHER, ...headers }), /server response: 400/);
  }
  const socket = await connectSocket(service.url, { ...CAREFUL, "x-forebay-require": "proven" });
  await socket.close();
});

test("known state answers reads at the block with confirmations", async (t) => {
  t.mock.method(Math, "random", () => 0.5);
  const accounts = Array.from({ length: 8 }, (_, index) => addressOf(index));
  const chain = new StandInChain("amsterdam");
  chain.mine(accounts.map((address) => [address, 1n]));
  const node = await startWorldNode(t, chain);
  const service = await createService(
    { nodes: [{ url: node.url }], blockTimeMs: LONG_MS, forks: "prague", state: { waitMs: LONG_MS } },
    ACCESS,
  );
  t.after(() => service.close());
  let knownAnswers = 0;
  for (let round = 2; round < 40; round++) {
    chain.mine([[addressOf(0), BigInt(round)]]);
    await followHead(service, chain);
    for (const [index, address] of accounts.entries()) {
      for (const headers of [OTHER, CAREFUL]) {
        const { body, headers: own } = await rpc(service.url, "eth_getBalance", [address, "latest"], headers);
        knownAnswers += headers === CAREFUL && own.get("cache-status")?.endsWith("detail=state") ? 1 : 0;
        const newest = headers === CAREFUL ? Math.max(round - BEHIND, 1) : round;
        assert.equal(Number(body.result), index === 0 ? newest : 1, `${round} ${index}`);
      }
    }
  }
  assert.ok(knownAnswers > 0);
});
