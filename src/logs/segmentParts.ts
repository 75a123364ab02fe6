import type { BlockRange } from "../core/logRange.ts";
import { endOfRange, startOfRange } from "./plan.ts";
import type { SegmentAssembly } from "./segmentAssembly.ts";

export type State =
  | { readonly kind: "missing" }
  | { readonly kind: "fetching" }
  /** The store had it at the last lookup. */
  | { readonly kind: "stored" }
  | { readonly kind: "buffered"; readonly bytes: Uint8Array }
  | { readonly kind: "sent" };

export const MISSING: State = { kind: "missing" };

/** A segment, or the part of it that one fetch range contains. It is fetched and sent as a whole. */
export interface Part extends BlockRange {
  readonly segment: SegmentAssembly;
  state: State;
}

/** Which end of a run of missing blocks is fetched first. */
export type ClaimOrder = "ascending" | "descending";

/** Adjacent missing parts, and the index of the first. */
interface Run extends BlockRange {
  readonly index: number;
  readonly parts: readonly Part[];
}

/** Splits a missing part before these blocks, in ascending order. */
function* splitBefore(part: Part, ...blocks: readonly bigint[]): Generator<Part> {
  let rest = part;
  for (const block of blocks) {
    if (rest.from < block && block <= rest.to) {
      yield { ...rest, to: block - 1n };
      rest = { ...rest, from: block };
    }
  }
  yield rest;
}

/** The parts of a query's segments, in ascending order and without a hole. */
export class SegmentParts {
  readonly #parts: Part[];

  constructor(segments: readonly SegmentAssembly[]) {
    this.#parts = segments.map((segment) => {
      const { from, to } = segment.range;
      return { from, to, segment, state: MISSING };
    });
  }

  get length(): number {
    return this.#parts.length;
  }

  at(index: number): Part | undefined {
    return this.#parts[index];
  }

  slice(start: number, end?: number): readonly Part[] {
    return this.#parts.slice(start, end);
  }

  firstRecent(): number {
    return this.#parts.findIndex(({ segment }) => !segment.range.final);
  }

  nextMissing(start: number): number {
    let index = start;
    while (index < this.#parts.length && !this.#isMissing(index)) {
      index++;
    }
    return index < this.#parts.length ? index : -1;
  }

  /** Cuts up to `maxBlocks` blocks out of one end of the missing run that contains `index`. Splits parts at the cut. */
  cut(index: number, maxBlocks: number, order: ClaimOrder): readonly Part[] {
    const run = this.#runAt(index, order);
    if (run === undefined) {
      return [];
    }
    const from = order === "descending" ? startOfRange(run, maxBlocks) : run.from;
    const to = order === "ascending" ? endOfRange(run, maxBlocks) : run.to;
    const parts = run.parts.flatMap((part) => [...splitBefore(part, from, to + 1n)]);
    if (parts.length > run.parts.length) {
      this.#parts.splice(run.index, run.parts.length, ...parts);
    }
    return parts.filter((part) => part.from >= from && part.to <= to);
  }

  #isMissing(index: number): boolean {
    return this.#parts[index]?.state.kind === "missing";
  }

  /** Returns the missing parts around `index`: those above it, and in descending order those below it too. */
  #runAt(index: number, order: ClaimOrder): Run | undefined {
    let first = index;
    while (order === "descending" && this.#isMissing(first - 1)) {
      first--;
    }
    let end = index;
    while (this.#isMissing(end)) {
      end++;
    }
    const parts = this.#parts.slice(first, end);
    const [lowest] = parts;
    const highest = parts.at(-1);
    return lowest && highest && end > index ? { index: first, parts, from: lowest.from, to: highest.to } : undefined;
  }
}
