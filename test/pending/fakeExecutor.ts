import type { BlockId } from "../../src/core/heads.ts";
import type { AccountChange } from "../../src/core/stateReader.ts";
import { createBloom } from "../../src/ethereum/bloom.ts";
import { type Address, type Hash, parseData } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import type { LogEntry } from "../../src/ethereum/receipt.ts";
import type {
  ExecutableMessage,
  Execution,
  Executor,
  TransactionOutcome,
} from "../../src/pending/executableMessage.ts";

export interface FakeRun {
  readonly logs?: readonly LogEntry[];
  readonly changes?: readonly (readonly [Address, AccountChange])[];
  readonly unverified?: Execution["unverified"];
}

/** Creates an executor that executes nothing. Each message has the result that the test defines, at once or on release. */
export const createFakeExecutor = () => {
  const jobs: ExecutableMessage[] = [];
  const rebased: { readonly base: BlockId; readonly through: number | undefined }[] = [];
  const runs = new Map<string, FakeRun>();
  const roots = new Map<number, readonly `0x${string}`[]>();
  let gate: Promise<void> = Promise.resolve();

  const run = (job: ExecutableMessage): Execution => {
    const { logs = [], changes = [], unverified } = runs.get(`${job.environment.number}-${job.index}`) ?? {};
    const before = job.index === 0 ? [] : (roots.get(job.before ?? -1) ?? []);
    const all = [...before, ...job.transactions];
    roots.set(job.id, all);
    return {
      transactions: job.transactions.map((raw) => ({ hash: keccak256Hex(parseData(raw)), sender: SENDER })),
      transactionsRoot: orderedTrieRoot(all.map(parseData)),
      unverified,
      outcomes: unverified ? undefined : job.transactions.map((_, position) => outcomeOf(position, logs)),
      changes: unverified ? undefined : new Map(changes),
    };
  };

  const executor: Executor = {
    execute: async (job) => {
      jobs.push(job);
      const execution = run(job);
      await gate;
      return execution;
    },
    rebase: (base, through) => rebased.push({ base, through }),
    close: async () => {},
  };
  return {
    executor,
    jobs,
    rebased,
    /** Defines the result of the message `<block>-<index>`. */
    say: (id: string, fake: FakeRun) => runs.set(id, fake),
    /** Delays all results from now on. Returns the function that releases them. */
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      return () => {
        gate = Promise.resolve();
        resolve();
      };
    },
  };
};

const outcomeOf = (position: number, logs: readonly LogEntry[]): TransactionOutcome => ({
  receipt: {
    type: 2,
    status: true,
    cumulativeGasUsed: BigInt(position + 1) * 21_000n,
    logs: position === 0 ? logs : [],
    logsBloom: createBloom(),
  },
  refund: 0n,
});

const SENDER: Address = `0x${"11".repeat(20)}`;

export const rootOf = (raws: readonly `0x${string}`[]): Hash => orderedTrieRoot(raws.map(parseData));
