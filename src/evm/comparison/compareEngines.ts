import { formatReads } from "../../core/readSet.ts";
import type { AccountState, StateReader } from "../../core/stateReader.ts";
import { formatData, type Hash } from "../../ethereum/hex.ts";
import type { Engines } from "../createEngines.ts";
import { DeadlineError } from "../deadlineError.ts";
import type { Engine, TransactionContext, TransactionResult } from "../engine.ts";
import type { ExecutionState } from "../executionState.ts";
import { NotExecutableError } from "../notExecutableError.ts";
import { ReadRecorder } from "../readRecorder.ts";
import type { WorkerContext } from "../reads/steppedRun.ts";
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

export interface CompareOptions extends Pick<WorkerContext, "withState"> {
  readonly run: (context: WorkerContext) => Promise<unknown>;
  readonly ours: Engines;
  readonly reference: Engines;
  /** The run as it was sent to the thread, for the payload. */
  readonly described: object;
}

/** Executes a run on each engine. Compares results, reads and changed values after each of its steps. Throws DeadlineError. */
export const compareEngines = async ({
  described,
  run,
  withState,
  ours,
  reference,
}: CompareOptions): Promise<Comparison> => {
  const first = await observe(run, withState, ours);
  const second = await observe(run, withState, reference);
  for (const [at, { entry, fields }] of first.steps.entries()) {
    const difference = differenceOf(fields, second.steps[at]?.fields ?? fields);
    if (difference !== undefined) {
      const codes = entry === undefined ? [] : [entry];
      return { outcome: "different", difference: { ...difference, codes, payload: formatPlain(described) } };
    }
  }
  return { outcome: first.isLeft || second.isLeft ? "skipped" : "same" };
};

/** What an engine calculates in one step, by name and as text. */
type StepFields = ReadonlyMap<string, string>;

interface ObservedRun {
  readonly steps: { readonly entry: Hash | undefined; readonly fields: StepFields }[];
  /** The engine leaves a step to a node, or the state cannot be completed. */
  isLeft: boolean;
  /** Of the states that the run uses. */
  readonly readers: WeakMap<ExecutionState, StateReader>;
}

/** Executes a run on one engine. The run itself fails in the same way with any engine. */
const observe = async (
  run: CompareOptions["run"],
  withState: WorkerContext["withState"],
  engines: Engines,
): Promise<ObservedRun> => {
  const observed: ObservedRun = { steps: [], isLeft: false, readers: new WeakMap() };
  const withObservedState: WorkerContext["withState"] = async (runOn) => {
    const { length } = observed.steps;
    let runError: unknown;
    try {
      return await withState((reader) => {
        // A run is repeated until its state is complete. What came before was based on guesses.
        observed.steps.length = length;
        observed.isLeft = false;
        return runOn(reader).catch((error: unknown) => {
          runError = error;
          throw error;
        });
      });
    } catch (error) {
      if (error !== runError) {
        // All steps were based on guesses.
        observed.steps.length = length;
        observed.isLeft = true;
      }
      throw error;
    }
  };
  await run({ engine: (rules) => observedEngine(engines(rules), observed), withState: withObservedState }).catch(
    (error: unknown) => {
      if (error instanceof DeadlineError) {
        throw error;
      }
    },
  );
  return observed;
};

/** Notes each step of an engine. */
const observedEngine = (engine: Engine, observed: ObservedRun): Engine => {
  const step = async <T extends TransactionResult | Uint8Array>(
    context: TransactionContext,
    called: CalledCode,
    execute: (context: TransactionContext) => Promise<T>,
  ): Promise<T> => {
    const entry = entryOf(context, called);
    const reads = new ReadRecorder();
    const [outcome] = await Promise.allSettled([execute({ ...context, reads })]);
    if (outcome.status === "rejected" && isLeft(outcome.reason)) {
      observed.isLeft = true;
      throw outcome.reason;
    }
    const changed = changedFields(context.state, observed.readers.get(context.state));
    const read = ["reads", formatReads(reads.readSet()).join(", ")] as const;
    observed.steps.push({ entry, fields: new Map([...fieldsOf(outcome), read, ...changed]) });
    if (outcome.status === "rejected") {
      throw outcome.reason;
    }
    return outcome.value;
  };
  return {
    rules: engine.rules,
    precompiles: engine.precompiles,
    isActive: (eip) => engine.isActive(eip),
    createState: (reader) => {
      const state = engine.createState(reader);
      observed.readers.set(state, reader);
      return state;
    },
    transact: (context, message, options) => step(context, message, (on) => engine.transact(on, message, options)),
    deposit: (context, deposit) => step(context, deposit, (on) => engine.deposit(on, deposit)),
    systemCall: (context, to, input) => step(context, { to, input }, (on) => engine.systemCall(on, to, input)),
  };
};

/** Whether an engine leaves the step to a node, or had no time for it. */
const isLeft = (error: unknown): boolean => error instanceof NotExecutableError || error instanceof DeadlineError;

const differenceOf = (ours: StepFields, reference: StepFields) => {
  for (const field of new Set([...ours.keys(), ...reference.keys()])) {
    const [one = "none", other = "none"] = [ours.get(field), reference.get(field)];
    if (one !== other) {
      return { field, ours: one, reference: other };
    }
  }
  return undefined;
};

/** Returns the fields of a step. A rejection has geth's words; other errors are faults of one engine. */
const fieldsOf = (
  outcome: PromiseSettledResult<TransactionResult | Uint8Array>,
): readonly (readonly [string, string])[] => {
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

/** Returns the accounts and slots whose values differ from those before the run. An engine may write a value that was there. */
const changedFields = (
  state: ExecutionState,
  reader: StateReader | undefined,
): readonly (readonly [string, string])[] =>
  [...state.changes()].flatMap(([address, { account, isCleared, slots }]) =>
    [
      [`account ${address}`, formatAccount(account), formatAccount(reader?.account(address))] as const,
      ...[...slots].map(([slot, value]) => {
        const before = isCleared ? "0x" : formatData(reader?.storage(address, slot) ?? new Uint8Array(0));
        return [`slot ${address} ${slot}`, formatData(value), before] as const;
      }),
    ].flatMap(([field, value, before]) => (value === before ? [] : [[field, value] as const])),
  );

const formatAccount = (account: AccountState | undefined): string =>
  account === undefined ? "none" : `${account.nonce} ${account.balance} ${account.codeHash}`;

/** Formats plain data as JSON text. A bigint is `{"$bigint": "1"}`, bytes are `{"$bytes": "0x01"}`. */
const formatPlain = (value: unknown): string =>
  JSON.stringify(value, (_, member: unknown) => {
    if (typeof member === "bigint") {
      return { $bigint: String(member) };
    }
    return member instanceof Uint8Array ? { $bytes: formatData(member) } : member;
  });
