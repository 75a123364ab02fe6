import type { ReadSet } from "../../core/readSet.ts";
import type { StateReader, StateValues } from "../../core/stateReader.ts";
import { formatData, type Hash } from "../../ethereum/hex.ts";
import { keccak256Hex } from "../../ethereum/keccak.ts";
import type { Rules } from "../../ethereum/rules.ts";
import type { Engines } from "../createEngines.ts";
import type { DepositResult, Engine, TransactionContext, TransactionResult } from "../engine.ts";
import type { ExecutionState } from "../executionState.ts";
import { ReadRecorder } from "../readRecorder.ts";
import type { TransactionMessage } from "../transactionMessage.ts";
import { RecordedReads } from "./recordedReads.ts";

/** The outcome of one call of an engine's method. */
export type StepOutcome =
  | {
      readonly kind: "result";
      readonly result: TransactionResult | DepositResult | Uint8Array;
      readonly reads: ReadSet;
    }
  | { readonly kind: "error"; readonly error: unknown };

export interface ObservedStep {
  readonly outcome: StepOutcome;
  /** Hash of the code that the step ran first; `undefined` if its recipient has no code. */
  readonly entry: Hash | undefined;
  /** The field of the state after the step that the run observes, if any. */
  readonly field: string | undefined;
}

/** Formats one field of a state. */
export type FormatStateField = (state: ExecutionState) => string;

/** Passes a run on to engines, and records what each of them did and read. */
export class ObservedRun {
  readonly #engines: Engines;
  readonly #field: FormatStateField | undefined;
  #reads = new RecordedReads();
  #steps: ObservedStep[] = [];
  #states: ExecutionState[] = [];

  constructor(engines: Engines, field?: FormatStateField) {
    this.#engines = engines;
    this.#field = field;
  }

  get steps(): readonly ObservedStep[] {
    return this.#steps;
  }

  /** The states that were created, in order. */
  get states(): readonly ExecutionState[] {
    return this.#states;
  }

  get reads(): StateValues {
    return this.#reads.values();
  }

  /** Starts again: a run is repeated until its state is complete. Returns the reader for the run. */
  begin(reader: StateReader): StateReader {
    this.#steps = [];
    this.#states = [];
    this.#reads = new RecordedReads();
    return this.#reads.reader(reader);
  }

  engine(rules: Rules): Engine {
    const engine = this.#engines(rules);
    return {
      rules,
      precompiles: engine.precompiles,
      isActive: (eip) => engine.isActive(eip),
      createState: (reader) => {
        const state = engine.createState(reader);
        this.#states.push(state);
        return state;
      },
      transact: (context, message, options) =>
        this.#observe(context, message, (reads) => engine.transact({ ...context, reads }, message, options)),
      deposit: (context, deposit) =>
        this.#observe(context, deposit, (reads) => engine.deposit({ ...context, reads }, deposit)),
      systemCall: (context, to, input) =>
        this.#observe(context, { to, input }, (reads) => engine.systemCall({ ...context, reads }, to, input)),
    };
  }

  async #observe<T extends TransactionResult | Uint8Array>(
    context: TransactionContext,
    called: Called,
    run: (reads: ReadRecorder) => Promise<T>,
  ): Promise<T> {
    const entry = entryOf(context, called);
    const reads = new ReadRecorder();
    try {
      const result = await run(reads);
      const outcome: StepOutcome = { kind: "result", result, reads: reads.readSet() };
      this.#steps.push({ outcome, entry, field: this.#field?.(context.state) });
      return result;
    } catch (error) {
      this.#steps.push({ outcome: { kind: "error", error }, entry, field: undefined });
      throw error;
    }
  }
}

type Called = Pick<TransactionMessage, "to" | "input">;

/** Returns the hash of the code that a transaction runs first; `undefined` if its recipient has no code. */
export const entryOf = ({ state }: TransactionContext, { to, input }: Called): Hash | undefined => {
  if (to === null) {
    return keccak256Hex(input);
  }
  const account = state.codeOf(to).length > 0 ? state.accountOf(to) : undefined;
  return account && formatData(account.codeHash);
};
