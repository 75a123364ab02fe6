import type { Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { Fetched } from "./fetchLogs.ts";
import { blocksOf } from "./fetchRange.ts";
import { joinLogs } from "./mergeLogs.ts";
import { type Piece, spanLength, splitRange } from "./plan.ts";
import { cutSegment, findRange, keyOf, placesOf, type Segment, type SegmentStore } from "./segments.ts";

/** Kept segments above this are let go, and looked up again when their turn comes. */
const HOLD_FOUND_BYTES = 12 * 1024 * 1024;
const LOOKUP_PIECES = 128;
const LOOKUP_AGAIN = 16;

type State =
  | { readonly kind: "missing" }
  | { readonly kind: "loading" }
  /** In the store, as far as is known. */
  | { readonly kind: "kept" }
  | { readonly kind: "held"; readonly bytes: Uint8Array }
  | { readonly kind: "sent" };

interface Entry {
  readonly piece: Piece;
  /** False for a part of a segment that is too large for memory. */
  readonly isSegment: boolean;
  state: State;
}

/** Pieces side by side that are asked for as one. */
export interface ClaimedRange extends BlockRange {
  readonly final: boolean;
  /** Its logs came: they are held, and kept where they may be. */
  complete(fetched: Fetched): void;
  /** It did not fit into memory. */
  discard(): void;
}

export interface SpanLimits {
  /** A segment of more goes in parts. */
  readonly memoryBlocks: number;
  readonly spanBlocks: number;
}

/** One query's pieces in order: which are missing, in the store, held or sent. */
export interface SegmentTracker {
  readonly found: { readonly pieces: number; readonly from: ReadonlySet<Segment["from"]> };
  /** False once something was fetched that could not be kept. */
  readonly isStored: boolean;
  /** Of the pieces, and what else was counted. */
  readonly heldBytes: number;
  /** Bytes read that are no piece's yet; negative when they are let go. */
  countHeld(bytes: number): void;
  stateAt(index: number): State | undefined;
  firstRecent(): number;
  /** The first from `start` on that is missing, or -1. */
  nextMissing(start: number): number;
  /** The next span, from this missing piece on; it counts as asked for. */
  claimRange(index: number, limits: SpanLimits): ClaimedRange | undefined;
  /** Looks all pieces up. */
  lookUp(): Promise<void>;
  /** Looks those up again that were let go, this one and the next few. */
  lookUpAgain(index: number): Promise<void>;
  sent(index: number): void;
  /** Makes room for what comes first: what was found behind it can be looked up again. */
  evictBefore(index: number): void;
}

export const createSegmentTracker = (
  pieces: readonly Piece[],
  filterHash: string,
  heads: Heads,
  store: SegmentStore,
): SegmentTracker => {
  const entries: Entry[] = pieces.map((piece) => ({ piece, isSegment: true, state: { kind: "missing" } }));
  const foundFrom = new Set<Segment["from"]>();
  let foundPieces = 0;
  let isStored = true;
  let heldBytes = 0;

  const hold = (entry: Entry, bytes: Uint8Array) => {
    entry.state = { kind: "held", bytes };
    heldBytes += bytes.length;
  };

  const lookUpEntries = async (wanted: readonly Entry[]): Promise<void> => {
    const places = wanted.map(({ piece }) => placesOf(filterHash, piece, heads));
    const segments = await store.get(places.flat().map(({ key }) => key));
    let at = 0;
    wanted.forEach((entry, which) => {
      const own = places[which] ?? [];
      const first = own.findIndex((_, place) => segments[at + place] !== undefined);
      const segment = segments[at + first];
      at += own.length;
      if (first === -1 || segment === undefined) {
        entry.state = { kind: "missing" };
        return;
      }
      foundFrom.add(segment.from);
      const bytes = own[first]?.isWider ? cutSegment(segment.bytes, entry.piece) : segment.bytes;
      if (heldBytes + bytes.length > HOLD_FOUND_BYTES && wanted[0] !== entry) entry.state = { kind: "kept" };
      else hold(entry, bytes);
    });
  };

  const keep = (piece: Piece, bytes: Uint8Array, verified: boolean) => {
    const key = verified ? keyOf(filterHash, piece, heads) : undefined;
    if (key === undefined) isStored = false;
    else store.set(key, bytes, piece.final ? "final" : "recent", heads.at(piece.to));
  };

  /** A segment with more logs than memory has room for goes in parts, which are not kept. */
  const cutToMemory = (at: number, maxBlocks: number) => {
    const entry = entries[at];
    if (entry === undefined || blocksOf(entry.piece) <= maxBlocks) return;
    const parts = splitRange(entry.piece, maxBlocks).map(
      (range): Entry => ({
        piece: { ...range, final: entry.piece.final },
        isSegment: false,
        state: { kind: "missing" },
      }),
    );
    entries.splice(at, 1, ...parts);
  };

  const missingAt = (index: number): Piece | undefined => {
    const entry = entries[index];
    return entry?.state.kind === "missing" ? entry.piece : undefined;
  };

  const came = (span: readonly Entry[], { logs, timestamps, verified }: Fetched) => {
    for (const entry of span) {
      const bytes = joinLogs(logs.slice(...findRange(logs, entry.piece)), timestamps);
      hold(entry, bytes);
      if (entry.isSegment) keep(entry.piece, bytes, verified);
      else isStored = false;
    }
  };

  return {
    found: {
      get pieces() {
        return foundPieces;
      },
      from: foundFrom,
    },
    get isStored() {
      return isStored;
    },
    get heldBytes() {
      return heldBytes;
    },
    countHeld: (bytes) => {
      heldBytes += bytes;
    },
    stateAt: (index) => entries[index]?.state,
    firstRecent: () => entries.findIndex(({ piece }) => !piece.final),
    nextMissing: (start) => entries.findIndex(({ state }, index) => index >= start && state.kind === "missing"),

    claimRange: (index, { memoryBlocks, spanBlocks }) => {
      cutToMemory(index, memoryBlocks);
      const span = entries.slice(index, index + spanLength(missingAt, index, Math.min(memoryBlocks, spanBlocks)));
      const first = span[0]?.piece;
      const last = span.at(-1)?.piece;
      if (first === undefined || last === undefined) return undefined;
      const mark = (kind: "missing" | "loading") => {
        for (const entry of span) entry.state = { kind };
      };
      mark("loading");
      return {
        from: first.from,
        to: last.to,
        final: first.final,
        complete: (fetched) => came(span, fetched),
        discard: () => mark("missing"),
      };
    },

    lookUp: async () => {
      for (let at = 0; at < entries.length; at += LOOKUP_PIECES) {
        await lookUpEntries(entries.slice(at, at + LOOKUP_PIECES));
      }
      foundPieces = entries.filter(({ state }) => state.kind !== "missing").length;
    },
    lookUpAgain: (index) =>
      lookUpEntries(entries.slice(index, index + LOOKUP_AGAIN).filter(({ state }) => state.kind === "kept")),

    sent: (index) => {
      const entry = entries[index];
      if (entry === undefined) return;
      if (entry.state.kind === "held") heldBytes -= entry.state.bytes.length;
      entry.state = { kind: "sent" };
    },
    evictBefore: (index) => {
      for (const entry of entries.slice(index + 1)) {
        if (entry.state.kind !== "held" || !entry.isSegment || keyOf(filterHash, entry.piece, heads) === undefined)
          continue;
        heldBytes -= entry.state.bytes.length;
        entry.state = { kind: "kept" };
      }
    },
  };
};
