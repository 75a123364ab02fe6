import type { ReadSet } from "../../core/readSet.ts";
import type { StateReader } from "../../core/stateReader.ts";
import type { Rules } from "../../ethereum/rules.ts";
import type { Engines } from "../createEngines.ts";
import type { Engine } from "../engine.ts";
import { ReadRecorder } from "../readRecorder.ts";
import { type CompletedRun, completeRun, completeSteps, type FetchedState } from "../reads/complete.ts";
import type { SteppedRun } from "../reads/steppedRun.ts";
import type { WorkerContext } from "./workerContext.ts";

export interface RunHostOptions extends FetchedState {
  readonly engines: Engines;
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
    let reads: ReadRecorder | undefined;
    const completed = await completeRun((reader) => {
      reads = this.#reads && new ReadRecorder();
      return run(reader, reads);
    }, this.#options);
    return this.#resultOf(completed, reads);
  }

  async withSteps<T>(run: SteppedRun<T>): Promise<T> {
    const reads = this.#reads && new ReadRecorder();
    return this.#resultOf(await completeSteps(run, this.#options, reads), reads);
  }

  #resultOf<T>({ result, rounds }: CompletedRun<T>, reads: ReadRecorder | undefined): T {
    this.#rounds += rounds;
    if (reads !== undefined) {
      this.#reads?.add(reads.readSet());
    }
    return result;
  }
}
