import type { BlockId } from "../core/heads.ts";
import type { StateChanges } from "../core/stateReader.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { type Hash, parseData } from "../ethereum/hex.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import type { Rules } from "../ethereum/rules.ts";
import type { Engine } from "../evm/engine.ts";
import { NativeContractError } from "../evm/knownState.ts";
import { TransactionError } from "../evm/transactionError.ts";
import { BaseState, type BaseStateOptions } from "./baseState.ts";
import { BlockRun } from "./blockRun.ts";
import { overwritten } from "./blockState.ts";
import { type Decoded, decodeTransaction } from "./decodeTransaction.ts";
import type { Execution, Outcome, UnverifiedReason, Work } from "./execution.ts";
import { createReadSets } from "./readSets.ts";
import { type Layer, layerFromChanges } from "./stateLayers.ts";
import { StateRounds, Unreadable, VoidWork } from "./stateRounds.ts";
import { createTurns } from "./turns.ts";
import { compare, type ExecutedFlashblock, extend } from "./verifyWork.ts";

export interface FlashblockExecutorOptions extends BaseStateOptions {
  readonly engine: (rules: Rules) => Engine;
  /** Called when a message's state could not be read. It is tried again. */
  readonly onRetry?: (work: Work, error: Error) => void;
  /** That work's outcome is not awaited any more. */
  readonly isVoid?: (work: Work) => boolean;
  /** When that work must end, on the clock of `performance`: its block is sealed, and the next one waits for it. */
  readonly deadlineMs?: (work: Work) => number | undefined;
}

/** Runs works one after another, each on the outcome of another, and carries the base's values from block to block. */
export interface FlashblockExecutor {
  /** That work will be run: what it reads can be fetched while earlier ones wait for state. */
  expect(work: Work, rules: Rules): void;
  /**
   * `isExecutable: false` only decodes: the block's rules are not known. Throws VoidWork if the outcome is not awaited any more.
   */
  run(work: Work, rules: Rules, isExecutable?: boolean): Promise<Execution>;
  rebase(base: BlockId, through: number | undefined): void;
}

interface Task {
  readonly work: Work;
  readonly decoded: readonly Decoded[];
  readonly rounds: StateRounds;
}

const failureOf = (error: unknown): UnverifiedReason => {
  if (error instanceof NativeContractError) return "unexecutable";
  if (error instanceof Unreadable) return error.what;
  return error instanceof TransactionError ? "rejected" : "failed";
};

export const createFlashblockExecutor = (
  options: FlashblockExecutorOptions,
  firstBase: BlockId,
): FlashblockExecutor => {
  const { engine, codes } = options;
  const base = new BaseState(options, firstBase);
  const turns = createTurns();
  const readSets = createReadSets();
  const works = new Map<number, ExecutedFlashblock>();
  const tasks = new Map<number, Task>();
  /** Works whose turn has not come. */
  const expected = new Map<number, { readonly work: Work; readonly rules: Rules }>();
  /** The one that runs now, with what is written below it. */
  let current: { readonly run: BlockRun; readonly layers: readonly Layer[] } | undefined;
  let waiting = 0;

  /** Works up to this one are part of the base. */
  let passedThrough = 0;

  /** From that work down to the base. Throws where one of them is unknown: this thread may have replaced another. */
  const lineage = (from: number | undefined): readonly ExecutedFlashblock[] => {
    const line: ExecutedFlashblock[] = [];
    for (let id = from; id !== undefined && id > passedThrough; id = line.at(-1)?.before) {
      const ran = works.get(id);
      if (!ran) throw new Error("what this work starts from was not run here");
      line.push(ran);
    }
    return line;
  };

  /** Newest first; undefined where the state of one of them is not known. */
  const layersOf = (line: readonly ExecutedFlashblock[]): readonly Layer[] | undefined => {
    const layers = line.flatMap(({ layer }) => layer ?? []);
    return layers.length === line.length ? layers : undefined;
  };

  /** Hashes of blocks that are not sealed here yet: each is said by the block that follows it. */
  const ancestorsOf = (
    environment: PendingEnvironment,
    line: readonly ExecutedFlashblock[],
  ): ReadonlyMap<bigint, Hash> =>
    new Map(
      [environment, ...line.map((ran) => ran.environment)].map(({ number, parentHash }) => [number - 1n, parentHash]),
    );

  const remember = (changes: StateChanges): Layer => {
    for (const { account, code } of changes.values()) if (account && code) codes.set(account.codeHash, code);
    return layerFromChanges(changes);
  };

  /** What is written below a transaction that is guessed: all that has run by now. */
  const writtenByNow = (): readonly Layer[] =>
    current
      ? [layerFromChanges(current.run.changes()), ...current.layers]
      : (layersOf([...works.values()].reverse()) ?? []);

  const taskOf = (work: Work, rules: Rules): Task => {
    const known = tasks.get(work.id);
    if (known) return known;
    const decoded = work.transactions.map((raw) => decodeTransaction(parseData(raw), rules.chainId));
    const rounds = new StateRounds({
      base,
      work,
      engine: engine(rules),
      turns,
      readSets,
      transactions: decoded.flatMap((each) => each.prepared ?? []),
      written: writtenByNow,
      onRetry: (error) => options.onRetry?.(work, error),
      isVoid: () => options.isVoid?.(work) ?? false,
      deadlineMs: () => options.deadlineMs?.(work),
    });
    const task = { work, decoded, rounds };
    tasks.set(work.id, task);
    return task;
  };

  const runAhead = (work: Work, rules: Rules): void => {
    try {
      taskOf(work, rules).rounds.runAhead();
    } catch {
      // What is wrong with it is reported when it runs.
    }
  };

  /** While the one that runs waits for state, the others find out what they will read. */
  const wait = async (rounds: Promise<void>): Promise<void> => {
    waiting++;
    for (const { work, rules } of expected.values()) runAhead(work, rules);
    try {
      await rounds;
    } finally {
      waiting--;
    }
  };

  const execute = async (
    work: Work,
    rules: Rules,
    layers: readonly Layer[],
    line: readonly ExecutedFlashblock[],
  ): Promise<Outcome> => {
    const { decoded, rounds } = taskOf(work, rules);
    if (work.index === 0) base.known.add(overwritten(work.environment));
    const run = new BlockRun({
      work,
      engine: engine(rules),
      known: base.known,
      layers,
      ancestors: ancestorsOf(work.environment, line),
      transactions: decoded.flatMap((each) => each.prepared ?? []),
      gasUsed: work.index === 0 ? 0n : (line[0]?.gasUsed ?? 0n),
    });
    current = { run, layers };
    try {
      for (;;) {
        const lacking = await turns.urgent(() => run.advance());
        if (!lacking) break;
        await wait(rounds.bring(lacking, run.executed.length));
      }
    } finally {
      current = undefined;
    }
    return {
      receipts: run.executed.map(({ receipt }) => receipt),
      extras: run.executed.map(({ extra }) => extra),
      changes: run.changes(),
    };
  };

  const run = async (work: Work, rules: Rules, isExecutable = true): Promise<Execution> => {
    const line = lineage(work.before);
    const layers = layersOf(line);
    const { decoded } = taskOf(work, rules);
    const raws = decoded.map(({ raw }) => raw);
    let ran = extend(work, line[0], raws, []);
    let unverified = decoded.find((each) => each.unverified)?.unverified;
    let outcome: Outcome | undefined;
    let cause = isExecutable ? undefined : "the rules of this block are not known";
    if (!layers || work.hasPostExec || !isExecutable) unverified ??= "unexecutable";
    if (layers && !unverified) {
      try {
        const ended = await execute(work, rules, layers, line);
        const complete = extend(work, line[0], raws, ended.receipts);
        unverified = compare(work, complete);
        if (!unverified) {
          ran = { ...complete, layer: remember(ended.changes) };
          outcome = ended;
        }
      } catch (error) {
        if (error instanceof VoidWork) throw error;
        unverified = failureOf(error);
        cause = error instanceof Error ? error.message : String(error);
      }
    }
    works.set(work.id, ran);
    return {
      transactions: decoded.map(({ told }) => told),
      transactionsRoot: orderedTrieRoot(ran.raws),
      outcome,
      unverified,
      cause,
    };
  };

  return {
    expect: (work, rules) => {
      expected.set(work.id, { work, rules });
      if (waiting > 0) runAhead(work, rules);
    },
    run: async (work, rules, isExecutable) => {
      expected.delete(work.id);
      try {
        return await run(work, rules, isExecutable);
      } finally {
        tasks.delete(work.id);
      }
    },
    rebase: (next, through) => {
      const isKnown = through !== undefined && works.has(through);
      const layers = isKnown ? layersOf(lineage(through)) : undefined;
      if (layers) base.advance(next, layers.toReversed());
      else base.reset(next);
      const isVoid = options.isVoid ?? (() => through === undefined);
      for (const [id, { work }] of expected) if (isVoid(work)) expected.delete(id);
      for (const [id, { work, rounds }] of tasks) {
        if (isVoid(work)) tasks.delete(id);
        else if (!layers) rounds.restart();
      }
      passedThrough = through ?? passedThrough;
      for (const id of works.keys()) if (through === undefined || id <= through) works.delete(id);
    },
  };
};
