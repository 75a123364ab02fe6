import type { BlockId } from "../core/heads.ts";
import { Probation, type ProbationLimits } from "./probation.ts";
import type { WriteSet, WriteSetFailure, WriteSetOrigin, WriteSetSource } from "./writeSet.ts";

/** A source of a wrong value is not used for this time. */
const REST_MS = 3_600_000;
/** A paid source rests after this number of failures, one after the other. */
const MAX_FAILURES = 5;
/** The first rest after failures. Each further failure doubles it. */
const FIRST_REST_MS = 10_000;
const MAX_FAILURE_REST_MS = 600_000;

/** Nothing in a block proves the write sets of these sources. */
const UNPROVEN: ReadonlySet<WriteSetOrigin> = new Set(["trace"]);

const restAfter = (failures: number): number =>
  failures < MAX_FAILURES ? 0 : Math.min(FIRST_REST_MS * 2 ** (failures - MAX_FAILURES), MAX_FAILURE_REST_MS);

/** A source that can rest, and that is on probation if nothing proves its write sets. */
class GuardedSource implements WriteSetSource {
  readonly probation: Probation | undefined;
  readonly #source: WriteSetSource;
  readonly #nowMs: () => number;
  readonly #onUsed: (source: GuardedSource) => void;
  #restsUntilMs = Number.NEGATIVE_INFINITY;
  /** Since the last write set. */
  #failures = 0;

  constructor(
    source: WriteSetSource,
    { nowMs, probation }: SourceTrustOptions,
    onUsed: (source: GuardedSource) => void,
  ) {
    this.#source = source;
    this.#nowMs = nowMs;
    this.#onUsed = onUsed;
    this.probation = UNPROVEN.has(source.origin) ? new Probation(probation) : undefined;
  }

  get origin(): WriteSetOrigin {
    return this.#source.origin;
  }

  get unitsPerBlock(): number {
    return this.#source.unitsPerBlock;
  }

  get isResting(): boolean {
    return this.#nowMs() < this.#restsUntilMs;
  }

  /** Called when a value of its write sets was wrong. */
  rest(): void {
    this.#restsUntilMs = this.#nowMs() + REST_MS;
    this.probation?.restart();
  }

  async read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    if (this.isResting) {
      return "unsupported";
    }
    const outcome = await this.#source.read(block, signal);
    if (typeof outcome !== "string") {
      this.#failures = 0;
      this.#onUsed(this);
    } else if (outcome !== "unsupported" && this.unitsPerBlock > 0 && !signal.aborted) {
      this.#failures++;
      this.#restsUntilMs = Math.max(this.#restsUntilMs, this.#nowMs() + restAfter(this.#failures));
    }
    return outcome;
  }
}

export interface SourceTrustOptions {
  readonly nowMs: () => number;
  readonly probation: ProbationLimits;
}

/** Rests sources of wrong values, and paid sources that keep failing. Remembers which source was used last. */
export class SourceTrust {
  readonly #options: SourceTrustOptions;
  #lastUsed: GuardedSource | undefined;

  constructor(options: SourceTrustOptions) {
    this.#options = options;
  }

  /** Returns a source that has no write sets while it rests. */
  guard(source: WriteSetSource): WriteSetSource {
    return new GuardedSource(source, this.#options, (used) => {
      this.#lastUsed = used;
    });
  }

  /** Rests the source of the newest write set. Returns its origin. */
  rest(): WriteSetOrigin | undefined {
    this.#lastUsed?.rest();
    return this.#lastUsed?.origin;
  }
}
