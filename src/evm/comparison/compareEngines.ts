import { formatReads } from "../../core/readSet.ts";
import type { StateReader } from "../../core/stateReader.ts";
import { formatData, type Hash } from "../../ethereum/hex.ts";
import type { Rules } from "../../ethereum/rules.ts";
import type { Engines } from "../createEngines.ts";
import { DeadlineError } from "../deadlineError.ts";
import type { Engine, TransactionContext, TransactionResult } from "../engine.ts";
import type { ExecutionState } from "../executionState.ts";
import { NotExecutableError } from "../notExecutableError.ts";
import { ReadRecorder } from "../readRecorder.ts";
import { TransactionError } from "../transactionError.ts";
import { type CalledCode, entryOf } from "./forwardedCode.ts";

/** Two engines calculated different values. Plain data. */
export interface EngineDifference {
  /** The first value that differs, by name and as text. */
  readonly field: string;
  readonly ours: string;
  readonly reference: string;
  /** Hash of the code that the differing transaction ran first. Empty if its recipient has no code. */
  readonly codes: readonly Hash[];
  /** JSON text of the run. On the same state it reproduces the difference. */
  readonly payload: string;
}

/** `skipped`: an engine leaves the run to a node, or its state is incomplete. Plain data. */
export type Comparison =
  | { readonly outcome: "same" | "skipped" }
  | { readonly outcome: "different"; readonly difference: EngineDifference };

export interface ComparisonHost {
  engine(rules: Rules): Engine;
  withState<T>(run: (state: StateReader) => Promise<T>): Promise<T>;
}

export interface CompareOptions extends Pick<ComparisonHost, "withState"> {
  readonly run: (host: ComparisonHost) => Promise<unknown>;
  readonly ours: Engines;
  readonly reference: Engines;
  /** The run as it was sent to the thread, for the payload. */
  readonly described: object;
}

/**
 * Executes a run once, and each of its steps on both engines. Compares results, reads and the state after each step.
 * Throws DeadlineError.
 */
export const compareEngines = async ({
  described,
  run,
  withState,
  ...engines
}: CompareOptions): Promise<Comparison> => {
  const pair = new EnginePair(engines);
  let isComplete = true;
  const withPairedState: ComparisonHost["withState"] = async (runOn) => {
    let runError: unknown;
    try {
      return await withState((reader) => {
        // A run is repeated until its state is complete. What came before was based on guesses.
        pair.end = undefined;
        return runOn(reader).catch((error: unknown) => {
          runError = error;
          throw error;
        });
      });
    } catch (error) {
      isComplete = error === runError;
      throw error;
    }
  };
  // The run itself fails in the same way with any engine.
  await run({ engine: (rules) => pair.engine(rules), withState: withPairedState }).catch((error: unknown) => {
    if (error instanceof DeadlineError) {
      throw error;
    }
  });
  const { end } = pair;
  if (!isComplete || end === "skipped") {
    return { outcome: "skipped" };
  }
  return end === undefined
    ? { outcome: "same" }
    : { outcome: "different", difference: { ...end, payload: formatPlain(described) } };
};

type Execute<T> = (engine: Engine, context: TransactionContext) => Promise<T>;

/** Executes each step on two engines. */
class EnginePair {
  readonly #engines: Pick<CompareOptions, "ours" | "reference">;
  /** The two states of each state that the run uses. */
  readonly #states = new WeakMap<ExecutionState, readonly [ours: ExecutionState, reference: ExecutionState]>();
  /** The first difference, or why the run did not go on. */
  end: Omit<EngineDifference, "payload"> | "skipped" | undefined;

  constructor(engines: Pick<CompareOptions, "ours" | "reference">) {
    this.#engines = engines;
  }

  engine(rules: Rules): Engine {
    const ours = this.#engines.ours(rules);
    const reference = this.#engines.reference(rules);
    const step = <T extends TransactionResult | Uint8Array>(
      context: TransactionContext,
      called: CalledCode,
      execute: Execute<T>,
    ): Promise<T> => this.#step([ours, reference], context, called, execute);
    return {
      rules,
      precompiles: ours.precompiles,
      isActive: (eip) => ours.isActive(eip),
      createState: (reader) => {
        const states = [ours.createState(reader), reference.createState(reader)] as const;
        const state = pairOf(...states);
        this.#states.set(state, states);
        return state;
      },
      transact: (context, message, options) =>
        step(context, message, (engine, on) => engine.transact(on, message, options)),
      deposit: (context, deposit) => step(context, deposit, (engine, on) => engine.deposit(on, deposit)),
      systemCall: (context, to, input) =>
        step(context, { to, input }, (engine, on) => engine.systemCall(on, to, input)),
    };
  }

  async #step<T extends TransactionResult | Uint8Array>(
    [ours, reference]: readonly [Engine, Engine],
    context: TransactionContext,
    called: CalledCode,
    execute: Execute<T>,
  ): Promise<T> {
    const entry = entryOf(context, called);
    const states = this.#states.get(context.state);
    if (states === undefined) {
      throw new Error("the state is of another run");
    }
    const observe = async (engine: Engine, state: ExecutionState) => {
      const reads = new ReadRecorder();
      const [outcome] = await Promise.allSettled([execute(engine, { ...context, state, reads })]);
      if (outcome.status === "rejected" && isLeft(outcome.reason)) {
        this.end ??= "skipped";
        throw outcome.reason;
      }
      return { outcome, fields: [...fieldsOf(outcome), ["reads", formatReads(reads.readSet()).join(", ")] as const] };
    };
    const first = await observe(ours, states[0]);
    const second = await observe(reference, states[1]);
    const difference = differenceOf(first.fields, second.fields) ?? differenceOf(...writtenFields(...states));
    if (difference !== undefined) {
      // The run goes on: if the step was based on guesses, the later steps show what else is missing.
      this.end ??= { ...difference, codes: entry === undefined ? [] : [entry] };
    }
    if (first.outcome.status === "rejected") {
      throw first.outcome.reason;
    }
    return first.outcome.value;
  }
}

/** Whether an engine leaves the step to a node, or had no time for it. */
const isLeft = (error: unknown): boolean => error instanceof NotExecutableError || error instanceof DeadlineError;

/** Returns a state that reads from the first, and writes to both. */
const pairOf = (ours: ExecutionState, reference: ExecutionState): ExecutionState => {
  const write = (change: (state: ExecutionState) => void): void => {
    change(ours);
    change(reference);
  };
  return {
    accountOf: (address) => ours.accountOf(address),
    nonceOf: (address) => ours.nonceOf(address),
    balanceOf: (address) => ours.balanceOf(address),
    codeOf: (address) => ours.codeOf(address),
    storageOf: (address, slot) => ours.storageOf(address, slot),
    setAccount: (...args) => write((state) => state.setAccount(...args)),
    addBalance: (...args) => write((state) => state.addBalance(...args)),
    setCode: (...args) => write((state) => state.setCode(...args)),
    clear: (address) => write((state) => state.clear(address)),
    setStorage: (...args) => write((state) => state.setStorage(...args)),
    presetStorage: (...args) => write((state) => state.presetStorage(...args)),
    endTransaction: (removesEmpty) => write((state) => state.endTransaction(removesEmpty)),
    changes: () => ours.changes(),
  };
};

/** A value that both engines must calculate, by the name of its field. */
type ComparedField = readonly [field: string, value: string];

const differenceOf = (
  ours: readonly ComparedField[],
  reference: readonly ComparedField[],
): Pick<EngineDifference, "field" | "ours" | "reference"> | undefined => {
  for (const [at, [field, value]] of ours.entries()) {
    const [otherField, otherValue] = reference[at] ?? ["none", ""];
    if (field !== otherField || value !== otherValue) {
      return { field, ours: value, reference: field === otherField ? otherValue : `${otherField} ${otherValue}` };
    }
  }
  return undefined;
};

/** Returns the fields of a step. A rejection has geth's words; other errors are faults of one engine. */
const fieldsOf = (outcome: PromiseSettledResult<TransactionResult | Uint8Array>): readonly ComparedField[] => {
  if (outcome.status === "rejected") {
    const { reason } = outcome;
    return [["error", reason instanceof TransactionError ? `rejected: ${reason.fault}` : String(reason)]];
  }
  const result = outcome.value;
  if (result instanceof Uint8Array) {
    return [["output", formatData(result)]];
  }
  return [
    ["status", result.status],
    ["output", formatData(result.returnData)],
    ["gas", String(result.gasUsed)],
    // The difference to the gas is the refund.
    ["gasBeforeRefund", String(result.maxUsedGas)],
    ["blobGas", String(result.blobGasUsed)],
    ["created", result.created ?? "none"],
    ["logs", JSON.stringify(result.logs.map(({ address, topics, data }) => [address, topics, data]))],
  ];
};

/** Returns all accounts and slots that one of two states has written, with the values of each. */
const writtenFields = (...states: readonly [ExecutionState, ExecutionState]): [ComparedField[], ComparedField[]] => {
  const slots = new Map<Parameters<ExecutionState["storageOf"]>[0], Set<Hash>>();
  for (const [address, account] of states.flatMap((state) => [...state.changes()])) {
    const known = slots.get(address) ?? new Set();
    slots.set(address, new Set([...known, ...account.slots.map(([slot]) => slot)]));
  }
  const fields = (state: ExecutionState): ComparedField[] =>
    [...slots].flatMap(([address, written]) => [
      [`account ${address}`, formatAccount(state.accountOf(address))] as const,
      ...[...written].map((slot) => [`slot ${address} ${slot}`, formatData(state.storageOf(address, slot))] as const),
    ]);
  return [fields(states[0]), fields(states[1])];
};

const formatAccount = (account: ReturnType<ExecutionState["accountOf"]>): string =>
  account === undefined ? "none" : `${account.nonce} ${account.balance} ${formatData(account.codeHash)}`;

/** Formats plain data as JSON text. A bigint is `{"$bigint": "1"}`, bytes are `{"$bytes": "0x01"}`. */
const formatPlain = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === "bigint") {
      return { $bigint: String(member) };
    }
    return member instanceof Uint8Array ? { $bytes: formatData(member) } : member;
  });
