import type { StateReader, StateValues } from "../../core/stateReader.ts";
import type { Hash } from "../../ethereum/hex.ts";
import type { Engines } from "../createEngines.ts";
import { type DifferentValue, differenceOf, isLeft, stateDifference } from "./compareSteps.ts";
import { formatPlain } from "./formatPlain.ts";
import { type FormatStateField, ObservedRun } from "./observedRun.ts";
import { unionOf } from "./recordedReads.ts";

/** Longer payloads are without the state, which a node has. */
const MAX_PAYLOAD_CHARS = 262_144;

/** Two engines calculated different values. Plain data. */
export interface EngineDifference extends DifferentValue {
  /** Hash of the code that the differing transaction ran first. Empty if its recipient has no code. */
  readonly codes: readonly Hash[];
  /** JSON text of the run and of the state that it read. It reproduces the difference. */
  readonly payload: string;
}

/** `skipped`: the reference engine leaves the run to a node. Plain data. */
export type Comparison =
  | { readonly outcome: "same" | "skipped" }
  | { readonly outcome: "different"; readonly difference: EngineDifference };

/** A run as it was sent to the thread. Plain data. */
export interface ComparedRun {
  readonly name: string;
  readonly stateId: string;
  readonly input: unknown;
}

export interface ComparisonHost {
  readonly engine: Engines;
  withState<T>(run: (state: StateReader) => Promise<T>): Promise<T>;
}

export interface CompareOptions extends Pick<ComparisonHost, "withState"> {
  readonly run: (host: ComparisonHost) => Promise<unknown>;
  readonly ours: Engines;
  readonly reference: Engines;
}

/** Executes a run on both engines, and compares each step and all changes. */
export const compareEngines = async (described: ComparedRun, options: CompareOptions): Promise<Comparison> => {
  const first = await observe(options, options.ours);
  if (first === undefined || isLeft(first.steps.at(-1)?.outcome)) {
    return { outcome: "skipped" };
  }
  const second = await observe(options, options.reference);
  if (second === undefined) {
    return { outcome: "skipped" };
  }
  const isSkipped = isLeft(second.steps.at(-1)?.outcome);
  const different =
    firstDifferentStep(first, second) ?? (isSkipped ? undefined : await firstDifferentState(options, first, second));
  if (different !== undefined) {
    return {
      outcome: "different",
      difference: { ...different, payload: payloadOf(described, unionOf(first.reads, second.reads)) },
    };
  }
  return { outcome: isSkipped ? "skipped" : "same" };
};

/** Returns `undefined` if the state of the run could not be completed: its steps are based on guesses. */
const observe = async (
  { run, withState }: CompareOptions,
  engines: Engines,
  field?: FormatStateField,
): Promise<ObservedRun | undefined> => {
  const observed = new ObservedRun(engines, field);
  let isComplete = true;
  const withObservedState: ComparisonHost["withState"] = async (runOn) => {
    let runError: unknown;
    try {
      return await withState((reader) =>
        runOn(observed.begin(reader)).catch((error: unknown) => {
          runError = error;
          throw error;
        }),
      );
    } catch (error) {
      isComplete = error === runError;
      throw error;
    }
  };
  // The last step has the error of an engine. Another error of a complete run is the same in both runs.
  await run({ engine: (rules) => observed.engine(rules), withState: withObservedState }).catch(() => undefined);
  return isComplete ? observed : undefined;
};

type DifferentStep = Omit<EngineDifference, "payload">;

const firstDifferentStep = (ours: ObservedRun, reference: ObservedRun): DifferentStep | undefined => {
  for (const [at, { outcome, entry }] of ours.steps.entries()) {
    const other = reference.steps[at];
    if (other === undefined || isLeft(other.outcome)) {
      return undefined;
    }
    const difference = differenceOf(outcome, other.outcome);
    if (difference !== undefined) {
      return { ...difference, codes: codesOf(entry) };
    }
  }
  return undefined;
};

const codesOf = (entry: Hash | undefined): readonly Hash[] => (entry === undefined ? [] : [entry]);

/** Compares the states after the run. Runs again to find the transaction after which the field differs first. */
const firstDifferentState = async (
  options: CompareOptions,
  ours: ObservedRun,
  reference: ObservedRun,
): Promise<DifferentStep | undefined> => {
  for (const [at, state] of ours.states.entries()) {
    const other = reference.states[at];
    const different = other && stateDifference(state, other);
    if (different === undefined) {
      continue;
    }
    const { read, ...difference } = different;
    const [first, second] = [
      await observe(options, options.ours, read),
      await observe(options, options.reference, read),
    ];
    const step = first?.steps.find(({ field }, index) => field !== second?.steps[index]?.field);
    return { ...difference, codes: codesOf(step?.entry) };
  }
  return undefined;
};

const payloadOf = (run: ComparedRun, state: StateValues): string => {
  const text = formatPlain({ ...run, state });
  return text.length > MAX_PAYLOAD_CHARS ? formatPlain(run) : text;
};
