import assert from "node:assert/strict";
import { test } from "node:test";
import { workerEntry } from "../../src/app/workerEntry.ts";
import { type Address, type Hash, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { ExecutorClient } from "../../src/pending/executorClient.ts";
import type { FlashblockJob } from "../../src/pending/flashblockJob.ts";
import type { Senders } from "../../src/runs/senderRecovery.ts";

const ACCOUNT: Address = `0x${"ab".repeat(20)}`;
const BASE = { number: 0n, hash: ZERO_HASH };
const OTHER = { number: 1n, hash: `0x${"11".repeat(32)}` as Hash };

const createJob = (id: number): FlashblockJob => ({
  id,
  before: undefined,
  environment: {
    number: 1n,
    timestamp: 1_700_000_000n,
    gasLimit: 30_000_000n,
    baseFeePerGas: 1n,
    feeRecipient: ACCOUNT,
    prevRandao: ZERO_HASH,
    parentHash: ZERO_HASH,
    parentBeaconBlockRoot: ZERO_HASH,
    extraData: "0x",
  },
  index: 0,
  transactions: [],
  accessList: [],
  expected: { gasUsed: 0n, logsBloom: "0x", receiptsRoot: ZERO_HASH },
});

test("a change of base stays behind a job that waits for its senders, and a later job behind the change", async (t) => {
  const waiting = Promise.withResolvers<Senders>();
  const senders = [waiting.promise, [], []];
  const executor = new ExecutorClient({
    entry: workerEntry("pending"),
    // No rules are known, so that the thread decodes only.
    forks: () => ({ chainId: 901n, activations: [], blobs: {}, unknownFrom: 0n }),
    nativeContracts: [],
    senders: { of: () => senders.shift() ?? [], add: () => undefined },
    stateAt: () => ({ id: "none", read: () => Promise.reject(new Error("no state is read")) }),
    onFailure: (error) => {
      throw error;
    },
  });
  t.after(() => executor.close());
  executor.rebase(BASE, undefined);
  const first = executor.execute(createJob(1));
  const second = executor.execute(createJob(2));
  // The change discards all jobs that the thread received before it.
  executor.rebase(OTHER, undefined);
  const third = executor.execute(createJob(3));
  waiting.resolve([]);
  const cancelled = { message: "the base is another block now" };
  await Promise.all([assert.rejects(first, cancelled), assert.rejects(second, cancelled)]);
  assert.deepEqual((await third).transactions, []);
});
