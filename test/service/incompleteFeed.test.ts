import assert from "node:assert/strict";
import { test } from "node:test";
import { createDevnet } from "../devnet/devnet.ts";
import { rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createAsk } from "../support/fakes/nodeState.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { ActorSigner, ANVIL_KEYS } from "../support/state/actor.ts";

/** Their balances, read again at each block, pay for the traces of blocks that the feed brings in part. */
const ACCOUNTS = Array.from({ length: 60 }, (_, at) => `0x${(0xbeef_00 + at).toString(16).padStart(40, "0")}` as const);
const BLOCKS = 4;
/** Blocks before, after which the values are known. */
const LEARNED = 4;

const outcomes = async ({ telemetry }: Service): Promise<Record<string, number>> => {
  const { values } = await telemetry.metrics.stateWriteSets.get();
  return Object.fromEntries(
    values.flatMap(({ labels, value }) => (value === 0 ? [] : [[`${labels.source} ${labels.outcome}`, value]])),
  );
};

test("the write set of a block that the feed brought in part comes from the next source", async (t) => {
  const devnet = await createDevnet({ manual: true, generation: "e" });
  t.after(() => devnet.close());
  const service = await createService({
    nodes: [{ url: devnet.url, wsUrl: devnet.anvilWsUrl }],
    forks: "isthmus",
    quirks: { anvilDepositNonce: true },
    pending: { feeds: [devnet.feedUrl ?? ""] },
    // On a slow machine a trace takes longer than the default wait.
    state: { follow: "plain", waitMs: 1_000 },
  });
  t.after(() => service.close());
  const ask = createAsk(devnet.anvilUrl);
  const signer = new ActorSigner(devnet.chainId, ANVIL_KEYS);
  const send = async (from: number, to: `0x${string}`): Promise<void> => {
    const raw = await signer.sign({ kind: "call", from, to, value: 7n });
    await rpc(devnet.url, "eth_sendRawTransaction", [raw]);
  };
  const result = async (method: string, params: readonly unknown[]) =>
    (await rpc(service.url, method, params)).body.result;
  const pendingCount = async () => Number(await result("eth_getBlockTransactionCountByNumber", ["pending"]));

  /** Seals a block whose last message the feed does not send. Returns whether each balance needed no node. */
  const playBlock = async (last: `0x${string}`): Promise<readonly string[]> => {
    const height = Number(await ask("eth_blockNumber", []));
    await devnet.step();
    await send(0, ACCOUNTS[0] ?? last);
    await devnet.step();
    await until(async () => (await pendingCount()) === 2, "deposit and first transfer are pending");
    await send(1, last);
    devnet.faults.drop();
    await devnet.step();
    await devnet.sealNow();
    await until(async () => Number(await result("eth_blockNumber", [])) > height, "block");
    const details: string[] = [];
    for (const account of ACCOUNTS) {
      const { body, headers } = await rpc(service.url, "eth_getBalance", [account, "latest"]);
      assert.equal(body.result, await ask("eth_getBalance", [account, "latest"]), account);
      details.push(headers.get("cache-status") ?? "");
    }
    return details;
  };

  for (let block = 0; block < LEARNED; block++) {
    await playBlock(ACCOUNTS[1] ?? "0x");
  }
  const before = await outcomes(service);
  for (let block = 0; block < BLOCKS; block++) {
    const details = await playBlock(ACCOUNTS[2 + block] ?? "0x");
    const asked = details.filter((detail) => !detail.includes("detail=state"));
    assert.deepEqual(asked, [], `block ${block}: ${JSON.stringify(await outcomes(service))}`);
  }
  const after = await outcomes(service);
  for (const outcome of ["feed incomplete", "trace read"]) {
    assert.equal((after[outcome] ?? 0) - (before[outcome] ?? 0), BLOCKS, outcome);
  }
});
