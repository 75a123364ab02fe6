import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { PendingView, View } from "../../src/core/view.ts";
import type { ChainForks } from "../../src/ethereum/rules.ts";
import { createDevnet } from "../devnet/devnet.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { until } from "../support/clients/until.ts";
import { createDevnetPending, type DevnetPendingOptions } from "./devnetPending.ts";

const ISTHMUS: ChainForks = {
  chainId: 901n,
  activations: [],
  blobs: {},
  op: { regolith: 0n, canyon: 0n, ecotone: 0n, fjord: 0n, granite: 0n, holocene: 0n, isthmus: 0n },
};
const RECIPIENT = "0x00000000000000000000000000000000000beef1";
/** Creates a contract whose code is a single STOP. */
const CREATION = "0x600160005360016000f3";

const start = async (t: TestContext, options: Partial<DevnetPendingOptions> = {}) => {
  const devnet = await createDevnet({ manual: true, generation: "e" });
  const rig = await createDevnetPending(devnet, { forks: ISTHMUS, ...options });
  t.after(async () => {
    await rig.pending.close();
    await devnet.close();
  });
  const [account] = devAccounts;
  assert.ok(account);
  let nonce = 0;
  const send = async (transaction: { to?: `0x${string}`; value?: bigint; data?: `0x${string}`; gas?: bigint }) => {
    const fees = { maxFeePerGas: 20n * 10n ** 9n, maxPriorityFeePerGas: 1_000_000n };
    const signed = {
      type: "eip1559",
      chainId: devnet.chainId,
      nonce: nonce++,
      gas: 200_000n,
      ...fees,
      ...transaction,
    } as const;
    const raw = await account.signTransaction(signed);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] });
    await fetch(devnet.url, { method: "POST", headers: { "content-type": "application/json" }, body });
  };
  /** Sends the next message, and waits for the view that has it. */
  const step = async (): Promise<PendingView> => {
    const { promise, resolve } = Promise.withResolvers<PendingView>();
    let wanted: string | undefined;
    const look = ({ pending }: View) => {
      if (pending?.newest?.hash === wanted && pending?.stateFrom === "view") {
        resolve(pending);
      }
    };
    const stop = rig.pending.subscribe(({ view }) => look(view));
    const message = await devnet.step();
    wanted = message.diff.block_hash;
    look(rig.pending.view());
    const view = await promise;
    stop();
    return view;
  };
  const seal = async () => {
    await devnet.sealNow();
    await rig.heads.look();
  };
  return { devnet, rig, send, step, seal, sender: account.address.toLowerCase() as `0x${string}` };
};

test("messages of a real sequencer are executed and verified, and become the base without another fetch", async (t) => {
  const { devnet, rig, send, step, seal, sender } = await start(t);
  assert.equal(rig.pending.view().pending?.blocks.length, 0);
  await step();
  await send({ to: RECIPIENT, value: 7n });
  await send({ data: CREATION });
  const first = await step();
  assert.equal(first.newest?.transactionHashes.length, 3);
  for (const address of [sender, RECIPIENT, "0x420000000000000000000000000000000000001a"] as const) {
    const balance = BigInt(String(await devnet.rpc("eth_getBalance", address, "pending")));
    assert.equal(first.account(address)?.account?.balance, balance, address);
  }
  assert.equal(first.nonce(sender, 0n), 2n);
  assert.equal(JSON.parse(new TextDecoder().decode(first.newest?.receipts())).length, 3);

  await seal();
  assert.equal(rig.pending.view().pending?.base.number, 1n);
  await step();
  const reads = rig.reads();
  await send({ to: RECIPIENT, value: 1n });
  const second = await step();
  assert.equal(second.account(RECIPIENT)?.account?.balance, 8n);
  assert.equal(rig.reads(), reads, "what the sealed block held is still known");

  const { values } = await rig.telemetry.metrics.pendingMismatches.get();
  assert.deepEqual(values, []);
  assert.deepEqual(rig.failures, []);
});

test("a message whose state is not read does not keep the messages of the next block waiting", async (t) => {
  const read = Promise.withResolvers<void>();
  const { devnet, rig, send, step, seal } = await start(t, {
    beforeRead: ({ number }) => (number === 0n ? read.promise : Promise.resolve()),
  });
  await send({ to: RECIPIENT, value: 7n });
  await devnet.step();
  await until(() => rig.pending.view().pending?.mode === "unverified", "the message is late");
  await seal();
  await send({ to: RECIPIENT, value: 1n });
  const { number } = (await step()).newest ?? {};
  assert.equal(number, 2n);
  read.resolve();
});
