import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startAnvil } from "../devnet/anvil.ts";
import { createDevnet } from "../devnet/devnet.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createAsk } from "../support/fakes/nodeState.ts";
import { followAnvil } from "../support/servers/followHead.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";
import { ActorSigner, ANVIL_KEYS } from "../support/state/actor.ts";

/** Long, so that no execution is late on a busy machine, and the feed never counts as stale. */
const LONG_MS = 20_000;
const RICH = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const POOR = "0x00000000000000000000000000000000000beef1";

const start = async (t: TestContext, chain: ServiceChain) => {
  const service = await createService(chain);
  t.after(() => service.close());
  return service;
};

/** Sends a read and returns its result and Cache-Status. */
const read = async (service: Service, method: string, params: readonly unknown[]) => {
  const response = await fetch(service.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result } = (await response.json()) as { result?: string };
  return { result, status: response.headers.get("cache-status") ?? "" };
};

const outcomes = async (service: Service): Promise<Record<string, number>> => {
  const { values } = await service.telemetry.metrics.stateWriteSets.get();
  return Object.fromEntries(
    values.flatMap(({ labels, value }) => (value === 0 ? [] : [[`${labels.source} ${labels.outcome}`, value]])),
  );
};

/** A source is paid for once the balances that are read again would cost twice as much. */
const ACCOUNTS = Array.from({ length: 60 }, (_, at) => `0x${(0xbeef_00 + at).toString(16).padStart(40, "0")}`);

test("balances at latest are those after the newest block, with write sets of traces", async (t) => {
  const anvil = await startAnvil(["--hardfork", "prague"]);
  t.after(() => anvil.close());
  const service = await start(t, {
    nodes: [{ url: anvil.url, wsUrl: anvil.url.replace("http", "ws") }],
    forks: "prague",
    state: {
      follow: "plain",
      source: "trace",
    },
  });
  const accounts = [...ACCOUNTS, RICH, POOR];
  let hits = 0;
  let height = 0;
  await until(async () => {
    const to = accounts[height % 3];
    await anvil.call("eth_sendTransaction", { from: RICH, to, value: "0x1" });
    height++;
    await until(async () => Number((await read(service, "eth_blockNumber", [])).result) >= height, "block");
    for (const account of accounts) {
      const { result, status } = await read(service, "eth_getBalance", [account, "latest"]);
      assert.equal(result, await anvil.call("eth_getBalance", account, "latest"), account);
      hits += status.includes("detail=state") ? 1 : 0;
    }
    const { "trace read": writeSets = 0 } = await outcomes(service);
    return writeSets >= 3 && hits >= 3;
  }, "write sets are read, and answer");
});

test("balances at latest are answered from the feed's execution, which costs nothing", async (t) => {
  const devnet = await createDevnet({ generation: "e", blockTimeMs: 400 });
  t.after(() => devnet.close());
  const service = await start(t, {
    nodes: [{ url: devnet.url, wsUrl: devnet.anvilWsUrl }],
    forks: "isthmus",
    quirks: { anvilDepositNonce: true },
    pending: { feeds: [devnet.feedUrl ?? ""] },
    state: { follow: "plain" },
  });
  const ask = createAsk(devnet.anvilUrl);
  let hits = 0;
  await until(async () => {
    const { result, status } = await read(service, "eth_getBalance", [RICH, "latest"]);
    assert.equal(result, await ask("eth_getBalance", [RICH, "latest"]));
    hits += status.includes("detail=state") ? 1 : 0;
    const { "feed read": executed = 0 } = await outcomes(service);
    return executed >= 3 && hits >= 3;
  }, "write sets of the feed are read, and answer");
  const counted = await outcomes(service);
  assert.equal(counted["trace read"], undefined, JSON.stringify(counted));
});

test("messages of the feed are executed on no value from before all known state was dropped", async (t) => {
  const devnet = await createDevnet({ manual: true, generation: "e" });
  t.after(() => devnet.close());
  const service = await start(t, {
    nodes: [{ url: devnet.url, wsUrl: devnet.anvilWsUrl }],
    forks: "isthmus",
    quirks: { anvilDepositNonce: true },
    pending: { feeds: [devnet.feedUrl ?? ""] },
    allowNamespaces: ["anvil"],
    blockTimeMs: LONG_MS,
    state: { follow: "plain", waitMs: 1_000 },
  });
  const signer = new ActorSigner(devnet.chainId, ANVIL_KEYS);
  const balance = async (block: string) => (await read(service, "eth_getBalance", [POOR, block])).result;
  /** A block with one transfer, first in a message. */
  const play = async (before: bigint): Promise<void> => {
    const height = Number((await read(service, "eth_blockNumber", [])).result) + 1;
    await devnet.step();
    await rpc(devnet.url, "eth_sendRawTransaction", [
      await signer.sign({ kind: "call", from: 0, to: POOR, value: 1n }),
    ]);
    await devnet.step();
    // Before its first message is executed, the block below is the pending one.
    await until(async () => {
      const { headers, body } = await rpc(service.url, "eth_getBlockByNumber", ["pending", false]);
      const { number, transactions } = body.result as { number: string; transactions: readonly unknown[] };
      return headers.get("x-forebay-pending") === "live" && Number(number) === height && transactions.length === 2;
    }, "deposit and transfer are pending");
    const after = `0x${(before + 1n).toString(16)}`;
    assert.equal(await balance("pending"), after);
    await devnet.sealNow();
    await followAnvil(service, { call: devnet.rpc });
    assert.equal(await balance("latest"), after);
  };
  await play(0n);
  await play(1n);
  await rpc(service.url, "anvil_setBalance", [POOR, "0x100"]);
  await play(256n);
  await play(257n);
  const { "feed read": executed } = await outcomes(service);
  assert.ok(executed !== undefined && executed >= 2, JSON.stringify(await outcomes(service)));
});
