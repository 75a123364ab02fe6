import type { BlockId } from "../core/heads.ts";
import type { WriteSet, WriteSetFailure, WriteSetOrigin, WriteSetSource } from "./writeSet.ts";

/** A source of a wrong value is not used for this time. */
const REST_MS = 3_600_000;

/** Remembers which source was used last, and rests sources of wrong values. */
export class SourceTrust {
  readonly #nowMs: () => number;
  readonly #restsUntilMs = new Map<WriteSetOrigin, number>();
  #lastUsed: WriteSetOrigin | undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Returns a source that has no write sets while it rests. */
  guard(source: WriteSetSource): WriteSetSource {
    const read = (block: BlockId, signal: AbortSignal) => this.#read(source, block, signal);
    return {
      origin: source.origin,
      get unitsPerBlock() {
        return source.unitsPerBlock;
      },
      read,
    };
  }

  /** Rests the source of the newest write set. Returns its origin. */
  rest(): WriteSetOrigin | undefined {
    if (this.#lastUsed !== undefined) {
      this.#restsUntilMs.set(this.#lastUsed, this.#nowMs() + REST_MS);
    }
    return this.#lastUsed;
  }

  async #read(source: WriteSetSource, block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const { origin } = source;
    if (this.#nowMs() < (this.#restsUntilMs.get(origin) ?? 0)) {
      return "unsupported";
    }
    const outcome = await source.read(block, signal);
    if (typeof outcome !== "string") {
      this.#lastUsed = origin;
    }
    return outcome;
  }
}
