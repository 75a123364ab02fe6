import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { workerEntry } from "../../src/app/workerEntry.ts";
import type { Data } from "../../src/ethereum/hex.ts";
import { SenderCache } from "../../src/evm/senders/senderCache.ts";
import { EvmWorkers } from "../../src/runs/evmWorkers.ts";
import { SenderRecovery } from "../../src/runs/senderRecovery.ts";
import { until } from "../support/clients/until.ts";
import { readyWorkers } from "../support/servers/readyWorkers.ts";

const COUNT = 40;
const TO = "0x00000000000000000000000000000000000beef1";
const FEES = { maxFeePerGas: 10n ** 9n, maxPriorityFeePerGas: 1n };
const accounts = Array.from({ length: COUNT }, (_, at) =>
  privateKeyToAccount(`0x${(at + 1).toString(16).padStart(64, "0")}`),
);
const addresses = accounts.map(({ address }) => address.toLowerCase());

const signAll = (nonce: number): Promise<Data[]> =>
  Promise.all(
    accounts.map((account) =>
      account.signTransaction({ type: "eip1559", chainId: 1, nonce, to: TO, gas: 21_000n, ...FEES }),
    ),
  );

/** Workers that count their runs. */
const createRig = (t: TestContext, size: number) => {
  const workers = new EvmWorkers({ entry: workerEntry("simulation"), size });
  t.after(() => workers.close());
  const cache = new SenderCache();
  const inputs: (readonly Data[])[] = [];
  const recovery = new SenderRecovery({
    cache,
    workers: {
      run: (request) => {
        inputs.push(request.input as readonly Data[]);
        return workers.run(request);
      },
      get idle() {
        return workers.idle;
      },
      start: () => workers.start(),
    },
  });
  /** Starts all threads. */
  const warm = async () => {
    await readyWorkers(workers, size);
  };
  return { recovery, cache, inputs, workers, warm };
};

test("senders are recovered on all idle threads, each transaction once", async (t) => {
  const { recovery, inputs, workers, warm } = createRig(t, 2);
  await warm();
  const raws = await signAll(1);
  assert.equal(workers.idle, 2);
  assert.deepEqual(await recovery.of(raws), addresses);
  assert.deepEqual(
    inputs.map(({ length }) => length),
    [COUNT / 2, COUNT / 2],
  );
  assert.deepEqual(recovery.of(raws), addresses, "cached senders are returned without a wait");
  assert.equal(inputs.length, 2);
});

test("without an idle thread the senders are left to the caller, and the threads start", async (t) => {
  const { recovery, inputs, workers } = createRig(t, 1);
  const raws = await signAll(0);
  assert.deepEqual(
    recovery.of(raws),
    raws.map(() => undefined),
  );
  assert.equal(inputs.length, 0);
  recovery.add([{ hash: `0x${"11".repeat(32)}`, sender: undefined }]);
  await until(() => workers.idle === 1, "the thread is idle");
  assert.deepEqual(await recovery.of(raws), addresses);
});

test("deposits, invalid bytes and invalid signatures have no sender, and few transactions need no thread", async (t) => {
  const { recovery, inputs, warm } = createRig(t, 1);
  await warm();
  const raws = await signAll(1);
  const signed = raws[0] ?? "0x";
  const unsigned: Data = `${signed.slice(0, -128) as Data}${"ff".repeat(64)}`;
  const mixed: Data[] = ["0x7e", "0x", "0x05ff", unsigned, ...raws];
  const senders = await recovery.of(mixed);
  assert.deepEqual(senders, [undefined, undefined, undefined, undefined, ...addresses]);
  inputs.length = 0;
  const few = (await signAll(2)).slice(0, 15);
  assert.deepEqual(
    await recovery.of(few),
    few.map(() => undefined),
  );
  assert.equal(inputs.length, 0);
});
