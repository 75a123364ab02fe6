import { setImmediate as nextTick } from "node:timers/promises";
import { workerEntry } from "../../src/app/workerEntry.ts";
import type { Address } from "../../src/ethereum/hex.ts";
import { runSliced } from "../../src/state/runSliced.ts";
import { TraceSource } from "../../src/state/sources/traceSource.ts";
import { WriteSetThread } from "../../src/state/sources/writeSetThread.ts";
import { ValueStore } from "../../src/state/store/valueStore.ts";
import { BASE_FEE, type StandInBlock, StandInChain, type StandInTransaction } from "../support/standIn/standInChain.ts";
import { createTransaction } from "../support/standIn/standInTransactions.ts";
import { wordOf } from "../support/standIn/stateKeys.ts";
import { type BenchOptions, type BenchResult, round } from "./support/result.ts";
import { watchLoop } from "./support/watchLoop.ts";

const CLAIM = "A trace of 10 MB with 2,000 written slots holds the main thread at most 2 ms at a time";
const MAX_SLICE_MS = 2;
const TRANSACTIONS = 200;
const SLOTS_PER_TRANSACTION = 10;
/** The largest code of a contract (EIP-170). A trace repeats it in each transaction. */
const CODE_BYTES = 24_576;
const READS = 20;
const READS_SHORT = 5;
const DEADLINE_MS = 60_000;
const CACHE_BYTES = 64 * 1024 * 1024;

const FUNDS = 10n ** 18n;
/** What a transaction burns. Balances that do not add up to it would need the block's calls too. */
const BURNED = 21_000n * BASE_FEE;

const address = (kind: number, index: number): Address =>
  `0x${kind.toString(16).padStart(4, "0")}${(index + 1).toString(16).padStart(36, "0")}`;

/** Seals a block whose transactions write slots of a contract with a large code. */
const createBlock = (): StandInBlock => {
  const chain = new StandInChain("prague");
  const contract = address(0xc0, 0);
  const first = chain.draft();
  first.setNonce(contract, 1n);
  first.setCode(contract, `0x${"00".repeat(CODE_BYTES)}`);
  for (let index = 0; index < TRANSACTIONS; index++) {
    first.setBalance(address(0xa11, index), FUNDS);
  }
  first.endPhase();
  first.endPhase();
  const content = { transactions: [], withdrawals: [], feeRecipient: address(0xfee, 0), timestamp: 1_700_000_000n };
  chain.seal(first, content);
  const draft = chain.draft();
  draft.endPhase();
  const transactions: StandInTransaction[] = [];
  for (let index = 0; index < TRANSACTIONS; index++) {
    const sender = address(0xa11, index);
    draft.setNonce(sender, 1n);
    draft.setBalance(sender, FUNDS - BURNED);
    for (let slot = 0; slot < SLOTS_PER_TRANSACTION; slot++) {
      draft.setSlot(contract, wordOf(BigInt(index * SLOTS_PER_TRANSACTION + slot)), BigInt(index + 1));
    }
    draft.endPhase();
    transactions.push(createTransaction({ sender, nonce: 0n, to: contract, value: 0n }));
  }
  draft.endPhase();
  return chain.seal(draft, { ...content, transactions, timestamp: 1_700_000_002n });
};

/** Reads and applies a trace several times. Returns the CPU time of each turn of the event loop. */
const measure = async (block: StandInBlock, reads: number) => {
  const trace = Buffer.from(JSON.stringify(block.trace({ dialect: "geth", disableCode: false })));
  // A response has memory of its own, which moves to the thread.
  const responses = Array.from({ length: reads }, () => new Uint8Array(trace));
  const body = Buffer.from(JSON.stringify(block.fullJson));
  const thread = new WriteSetThread({
    entry: workerEntry("writeSets"),
    onFailure: (error) => {
      throw error;
    },
  });
  const source = new TraceSource({
    thread,
    nodesFor: () => [{ name: "node", send: async () => responses.pop() ?? new Uint8Array(0) }],
    blockTimeMs: () => DEADLINE_MS,
    isAllowed: () => true,
    readBlock: async () => body,
    systemContracts: () => [],
    blobs: () => undefined,
    unitsOf: () => 0,
  });
  const id = { number: BigInt(block.number), hash: block.hash };
  const values = new ValueStore(CACHE_BYTES);
  const ending = new AbortController();
  const turns = watchLoop(ending.signal);
  await nextTick();
  for (let read = 0; read < reads; read++) {
    const writeSet = await source.read(id, ending.signal);
    if (typeof writeSet === "string") {
      throw new Error(`no write set: ${writeSet}`);
    }
    values.begin({ number: id.number - 1n, hash: block.parentHash });
    await runSliced(values.apply(writeSet));
    await runSliced(values.prune());
  }
  ending.abort();
  await thread.close();
  return { traceMegabytes: trace.length / 1e6, turnsMs: (await turns).toSorted((a, b) => a - b) };
};

/** Measures how long a large trace holds the main thread, from its response until its values are known. */
export const bench = async ({ short }: BenchOptions): Promise<BenchResult> => {
  const { traceMegabytes, turnsMs } = await measure(createBlock(), short ? READS_SHORT : READS);
  /** Most turns wait for the thread. The longest turns of each read are those that hold it. */
  const longest = turnsMs.slice(-(short ? READS_SHORT : READS));
  const ours = longest[0] ?? 0;
  return {
    claim: CLAIM,
    ratio: round(MAX_SLICE_MS / ours),
    ours: round(ours, 2),
    yardstick: MAX_SLICE_MS,
    unit: "ms, the usual longest turn of a read",
    traceMegabytes: round(traceMegabytes, 1),
    medianLongestMs: round(longest[longest.length >> 1] ?? 0, 2),
    longestMs: round(longest.at(-1) ?? 0, 2),
  };
};
