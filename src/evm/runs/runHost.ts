import type { ReadSet } from "../../core/readSet.ts";
import type { StateKeys, StateReader, StateValues } from "../../core/stateReader.ts";
import type { Rules } from "../../ethereum/rules.ts";
import type { Engines } from "../createEngines.ts";
import type { Engine } from "../engine.ts";
import { ReadRecorder } from "../readRecorder.ts";
import { completeSteps } from "../reads/completeSteps.ts";
import type { KnownState } from "../reads/knownState.ts";
import { type CompletedRun, runUntilStateComplete } from "../reads/runUntilStateComplete.ts";
import type { SteppedRun } from "../reads/steppedRun.ts";
import type { WorkerContext } from "./workerContext.ts";

export interface RunHostOptions {
  readonly engines: Engines;
  /** The cached values of the run's state. */
  readonly known: KnownState;
  readonly fetch: (keys: StateKeys) => Promise<StateValues>;
  readonly tracesReads: boolean;
}

/** The part of the thread that one run uses. It counts the rounds of state fetching, and collects what the run reads. */
export class RunHost implements WorkerContext {
  readonly #options: RunHostOptions;
  readonly #reads: ReadRecorder | undefined;
  #rounds = 0;

  constructor(options: RunHostOptions) {
    this.#options = options;
    this.#reads = options.tracesReads ? new ReadRecorder() : undefined;
  }

  get rounds(): number {
    return this.#rounds;
  }

  /** Undefined unless requested. */
  get reads(): ReadSet | undefined {
    return this.#reads?.readSet();
  }

  engine(rules: Rules): Engine {
    return this.#options.engines(rules);
  }

  async withState<T>(run: (reader: StateReader, reads?: ReadRecorder) => Promise<T>): Promise<T> {
    const { known, fetch } = this.#options;
    let reads: ReadRecorder | undefined;
    const completed = await runUntilStateComplete(known, fetch, (reader) => {
      reads = this.#reads && new ReadRecorder();
      return run(reader, reads);
    });
    return this.#resultOf(completed, reads);
  }

  async withSteps<T>(run: SteppedRun<T>): Promise<T> {
    const { known, fetch } = this.#options;
    const reads = this.#reads && new ReadRecorder();
    return this.#resultOf(await completeSteps(run, { known, fetch, reads }), reads);
  }

  #resultOf<T>({ result, rounds }: CompletedRun<T>, reads: ReadRecorder | undefined): T {
    this.#rounds += rounds;
    if (reads !== undefined) {
      this.#reads?.add(reads.readSet());
    }
    return result;
  }
}
