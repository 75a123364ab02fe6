import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { StateKeys, StateValues } from "../../src/core/stateReader.ts";
import { type Address, type Hash, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import type { ChainForks } from "../../src/ethereum/rules.ts";
import type { ExecutableMessage } from "../../src/pending/executableMessage.ts";
import { ExecutorClient, type ExecutorOptions } from "../../src/pending/executorClient.ts";
import type { RunRequest } from "../../src/runs/evmWorkers.ts";
import { devAccounts } from "../devnet/traffic.ts";
import { createWorkers } from "../support/servers/evmWorkers.ts";

const ACCOUNT: Address = `0x${"ab".repeat(20)}`;
const BASE = { number: 0n, hash: ZERO_HASH };
const OTHER = { number: 1n, hash: `0x${"11".repeat(32)}` as Hash };

const createJob = (id: number, more: Partial<ExecutableMessage> = {}): ExecutableMessage => ({
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
  ...more,
});

/** Nobody knows the rules, so that the thread decodes only. */
const UNKNOWN: ChainForks = { chainId: 901n, activations: [], blobs: {}, unknownFrom: 0n };
const PRAGUE: ChainForks = { chainId: 901n, activations: [{ fork: "prague", timestamp: 0n }], blobs: {} };

const createClient = (t: TestContext, options: Partial<ExecutorOptions>): ExecutorClient => {
  const workers = createWorkers({
    onFailure: (error) => {
      throw error;
    },
  });
  const stateAt = () => ({ id: "none", read: () => Promise.reject(new Error("no state is read")) });
  const client = new ExecutorClient({
    ...{ workers, forks: () => UNKNOWN, nativeContracts: [], stateAt },
    // On a busy machine, a search that ends early has not seen all messages.
    maxSearchMs: Number.POSITIVE_INFINITY,
    ...options,
  });
  // The thread does not keep the process alive.
  const alive = setInterval(() => {}, 1_000);
  t.after(async () => {
    clearInterval(alive);
    await client.close();
  });
  client.rebase(BASE, undefined);
  return client;
};

test("a change of base stays behind a message that runs, and a later message behind the change", async (t) => {
  const executor = createClient(t, {});
  const first = executor.execute(createJob(1));
  const second = executor.execute(createJob(2));
  // The change discards all messages before it.
  executor.rebase(OTHER, undefined);
  const third = executor.execute(createJob(3));
  const cancelled = { message: "the base is another block now" };
  await Promise.all([assert.rejects(first, cancelled), assert.rejects(second, cancelled)]);
  assert.deepEqual((await third).transactions, []);
});

test("the senders of a message are recovered", async (t) => {
  const [account] = devAccounts;
  assert.ok(account);
  const { transactions } = await createClient(t, {}).execute(
    createJob(1, { transactions: [await transferOf(account)] }),
  );
  assert.deepEqual(
    transactions.map(({ sender }) => sender),
    [account.address.toLowerCase()],
  );
});

const transferOf = (account: (typeof devAccounts)[number]) =>
  account.signTransaction({
    ...{ type: "eip1559", chainId: 901, nonce: 0, to: ACCOUNT, gas: 21_000n },
    ...{ maxFeePerGas: 1n, maxPriorityFeePerGas: 0n },
  });

/** All accounts can pay. */
const valuesOf = ({ accounts, slots }: StateKeys): StateValues => ({
  accounts: accounts.map((address) => [address, { nonce: 0n, balance: 10n ** 18n, codeHash: EMPTY_CODE_HASH }]),
  codes: [],
  slots: slots.map(([address, slot]) => [address, slot, new Uint8Array(0)]),
  blockHashes: [],
});

test("a read that fails is repeated with its cause reported, and the message is executed", async (t) => {
  const [account] = devAccounts;
  assert.ok(account);
  const causes: string[] = [];
  let reads = 0;
  const read = async (keys: StateKeys): Promise<StateValues> => {
    reads++;
    if (reads < 3) {
      throw new Error(`no node answers (${reads})`);
    }
    return valuesOf(keys);
  };
  const executor = createClient(t, {
    forks: () => PRAGUE,
    stateAt: () => ({ id: "state", read }),
    onRetry: (_, cause) => causes.push(cause),
  });
  const { unverified } = await executor.execute(createJob(1, { transactions: [await transferOf(account)] }));
  assert.equal(unverified, "gas", "it was executed, and the message names other gas");
  assert.deepEqual(causes, ["no node answers (1)", "no node answers (2)"]);
});

test("the state of messages that wait is read with that of the message in turn", async (t) => {
  const [first, second, third] = devAccounts;
  assert.ok(first && second && third);
  const reads: StateKeys[] = [];
  const read = async (keys: StateKeys): Promise<StateValues> => {
    reads.push(keys);
    return valuesOf(keys);
  };
  const executor = createClient(t, { forks: () => PRAGUE, stateAt: () => ({ id: "state", read }) });
  const messages = await Promise.all(
    [first, second, third].map(async (account, at) =>
      createJob(at + 1, { transactions: [await transferOf(account)], index: at, before: at === 0 ? undefined : at }),
    ),
  );
  await Promise.all(messages.map((job) => executor.execute(job)));
  const senders = [first, second, third].map(({ address }) => address.toLowerCase());
  assert.deepEqual(
    senders.filter((sender) => !reads[0]?.accounts.some((address) => address === sender)),
    [],
  );
});

test("a read for messages whose base was replaced is not repeated", async (t) => {
  const [account] = devAccounts;
  assert.ok(account);
  const asked = Promise.withResolvers<void>();
  const failing = Promise.withResolvers<never>();
  let reads = 0;
  const read = (): Promise<never> => {
    reads++;
    asked.resolve();
    return failing.promise;
  };
  let forks = PRAGUE;
  const executor = createClient(t, { forks: () => forks, stateAt: () => ({ id: "state", read }) });
  const running = executor.execute(createJob(1, { transactions: [await transferOf(account)] }));
  await asked.promise;
  executor.rebase(OTHER, undefined);
  failing.reject(new Error("too late"));
  await assert.rejects(running, { message: "the base is another block now" });
  // The thread takes the next message once it has ended this one. It reads nothing for it.
  forks = UNKNOWN;
  await executor.execute(createJob(2));
  assert.equal(reads, 1);
});

test("a message without a result is reported with its cause, and one whose base was replaced is not", async (t) => {
  const failures: string[] = [];
  const run = ({ signal }: RunRequest): Promise<never> =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
      setTimeout(() => reject(new Error("execution aborted (timeout = 10s)")), 1);
    });
  const executor = createClient(t, {
    workers: { run, close: () => Promise.resolve() },
    onFailed: ({ number, index }, cause) => failures.push(`${number}-${index}: ${cause}`),
  });
  await assert.rejects(executor.execute(createJob(1)));
  const replaced = executor.execute(createJob(2));
  executor.rebase(OTHER, undefined);
  await assert.rejects(replaced, { message: "the base is another block now" });
  assert.deepEqual(failures, ["1-0: execution aborted (timeout = 10s)"]);
});

test("messages of a sealed block end 2 s after it, and those of the next one do not", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const run = ({ signal }: RunRequest): Promise<never> =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const executor = createClient(t, { workers: { run, close: () => Promise.resolve() } });
  const ended: string[] = [];
  const execute = (id: number): Promise<unknown> =>
    executor.execute(createJob(id)).catch(({ message }: Error) => ended.push(`${id}: ${message}`));
  const sealed = [execute(1), execute(2)];
  execute(3);
  executor.rebase(OTHER, 2);
  t.mock.timers.tick(1_999);
  await turn();
  assert.deepEqual(ended, []);
  t.mock.timers.tick(1);
  await Promise.all(sealed);
  assert.deepEqual(ended, ["1: its block is sealed", "2: its block is sealed"]);
});
