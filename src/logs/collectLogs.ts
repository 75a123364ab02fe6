import type { LogFilter } from "../chain/logFilter.ts";
import type { CallContext } from "../chain/source.ts";
import type { FetchContext } from "./askNode.ts";
import type { FetchLogs } from "./fetchLogs.ts";
import { blocksOf } from "./jobs.ts";
import { joinLogs } from "./mergeLogs.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import { type Piece, spanLength, splitRange } from "./plan.ts";
import { cutSegment, findRange, keyOf, placesOf, type Segment, type SegmentStore } from "./segments.ts";
import type { Asker } from "./spanSlots.ts";

/** What one query may hold of fetched and found logs that are not sent yet. */
const MAX_HELD_BYTES = 32 * 1024 * 1024;
/** Nothing new is asked for above this, so that what is in flight still finds room. */
const ADMIT_BELOW_BYTES = 20 * 1024 * 1024;
/** Kept segments above this are let go, and looked up again when their turn comes. */
const HOLD_FOUND_BYTES = 12 * 1024 * 1024;
/** Recent pieces are fetched ahead of their turn up to this. */
const RECENT_FIRST_BYTES = 10 * 1024 * 1024;
const LOOKUP_KEYS = 256;
const LOOKUP_AGAIN = 16;

class NoRoom extends Error {}
/** Made once: an abort without a reason makes an error with a stack each time. */
const ENDED = new Error("The span has ended");

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

export interface CollectOptions {
  readonly store: SegmentStore;
  readonly fetchLogs: FetchLogs;
  readonly limits: NodeLimits;
  /** Blocks of one span, from what the nodes allow. */
  readonly spanBlocks: (filterHash: string) => number;
  readonly maxSpans: number;
}

/** One query's pieces on their way: looked up, fetched where missing, given in order. */
export interface Collection {
  /** Looks all pieces up. */
  lookUp(): Promise<void>;
  /** Resolves when the recent pieces are fetched and fit the view. */
  fetchRecent(): Promise<void>;
  /** The pieces' bytes in order; memory is let go when the next is asked for. */
  readonly chunks: AsyncGenerator<Uint8Array, void, undefined>;
  readonly found: { readonly pieces: number; readonly from: ReadonlySet<Segment["from"]> };
  readonly nodes: ReadonlySet<string>;
  readonly isStored: () => boolean;
  /** Ends what is in flight; whoever waits for a chunk gets the error. */
  close(error?: unknown): void;
}

export const collectLogs = (
  pieces: readonly Piece[],
  filter: LogFilter,
  filterHash: string,
  context: CallContext,
  { store, fetchLogs, limits, spanBlocks, maxSpans }: CollectOptions,
): Collection => {
  const { heads } = context.view;
  const entries: Entry[] = pieces.map((piece) => ({ piece, isSegment: true, state: { kind: "missing" } }));
  const left = new AbortController();
  const signal = AbortSignal.any([context.signal, left.signal]);
  const asker: Asker = { caller: context.caller, query: entries, signal };
  const foundFrom = new Set<Segment["from"]>();
  const nodes = new Set<string>();
  let foundPieces = 0;
  let isStored = true;
  let held = 0;
  let inFlight = 0;
  let inFlightBlocks = 0;
  let next = 0;
  let isSending = false;
  let failure: { readonly error: unknown } | undefined;
  let changed = Promise.withResolvers<void>();

  const wake = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const hold = (entry: Entry, bytes: Uint8Array) => {
    entry.state = { kind: "held", bytes };
    held += bytes.length;
  };

  const lookUpEntries = async (wanted: readonly Entry[], maxBytes: number): Promise<void> => {
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
      if (held + bytes.length > maxBytes && wanted[0] !== entry) entry.state = { kind: "kept" };
      else hold(entry, bytes);
    });
  };

  const keep = (piece: Piece, bytes: Uint8Array, proven: boolean) => {
    const key = proven ? keyOf(filterHash, piece, heads) : undefined;
    if (key === undefined) isStored = false;
    else store.set(key, bytes, piece.final ? "final" : "recent", heads.at(piece.to));
  };

  /** Makes room for what comes first: what was found can be looked up again. */
  const letGo = () => {
    for (const entry of entries.slice(next + 1)) {
      if (entry.state.kind !== "held" || !entry.isSegment || keyOf(filterHash, entry.piece, heads) === undefined)
        continue;
      held -= entry.state.bytes.length;
      entry.state = { kind: "kept" };
    }
  };

  const fetchSpan = async (span: readonly Entry[], first: Entry, last: Entry): Promise<void> => {
    const range = { from: first.piece.from, to: last.piece.to };
    const spanLeft = new AbortController();
    const waiting = AbortSignal.any([signal, spanLeft.signal]);
    let taken = 0;
    const take = (bytes: number) => {
      taken += bytes;
      held += bytes;
      if (held <= MAX_HELD_BYTES || range.from === range.to) return;
      limits.overflowed(filterHash, blocksOf(range), taken);
      throw new NoRoom("No room for a span");
    };
    const fetchContext: FetchContext = {
      ...context,
      // Where another span failed, those that nodes are answering go on to the end and are kept; those that wait do not.
      signal: AbortSignal.any([context.signal, spanLeft.signal]),
      asker: { ...asker, signal: waiting },
      filterHash,
      take,
    };
    for (const entry of span) entry.state = { kind: "loading" };
    inFlight++;
    inFlightBlocks += blocksOf(range);
    try {
      const fetched = await fetchLogs({ ...range, filter, final: first.piece.final }, fetchContext);
      for (const node of fetched.nodes) nodes.add(node);
      for (const entry of span) {
        const logs = fetched.logs.slice(...findRange(fetched.logs, entry.piece));
        const bytes = joinLogs(logs, fetched.timestamps);
        hold(entry, bytes);
        if (entry.isSegment) keep(entry.piece, bytes, fetched.proven);
        else isStored = false;
      }
    } catch (error) {
      if (!(error instanceof NoRoom)) throw error;
      for (const entry of span) entry.state = { kind: "missing" };
      letGo();
    } finally {
      // What else the span started has no reader any more.
      spanLeft.abort(ENDED);
      inFlight--;
      inFlightBlocks -= blocksOf(range);
      held -= taken;
    }
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

  const hasRoom = () => {
    const bytesPerBlock = limits.bytesPerBlock(filterHash);
    return held + inFlightBlocks * bytesPerBlock < (isSending ? ADMIT_BELOW_BYTES : RECENT_FIRST_BYTES);
  };

  /** Asks for the next missing pieces from `start` on; false where there are none or there is no room. */
  const startSpan = (start: number): boolean => {
    const at = entries.findIndex(({ state }, index) => index >= start && state.kind === "missing");
    if (at === -1 || (!hasRoom() && !(at === next && inFlight === 0))) return false;
    const memoryBlocks = limits.memoryBlocks(filterHash);
    cutToMemory(at, memoryBlocks);
    const missing = (index: number) => {
      const entry = entries[index];
      return entry?.state.kind === "missing" ? entry.piece : undefined;
    };
    const length = spanLength(missing, at, Math.min(memoryBlocks, spanBlocks(filterHash)));
    const span = entries.slice(at, at + length);
    const [first] = span;
    const last = span.at(-1);
    if (first === undefined || last === undefined) return false;
    fetchSpan(span, first, last)
      .catch(close)
      .finally(() => {
        pump();
        wake();
      });
    return true;
  };

  const pump = () => {
    if (failure !== undefined || signal.aborted) return;
    const start = isSending ? next : entries.findIndex(({ piece }) => !piece.final);
    while (start >= 0 && inFlight < maxSpans && startSpan(start));
  };

  const waitForChange = async () => {
    if (failure === undefined) await changed.promise;
    if (failure !== undefined) throw failure.error;
  };

  const close = (error: unknown = new Error("Nobody reads any more")) => {
    failure ??= { error };
    left.abort(error);
    wake();
  };
  const onAbort = () => close(context.signal.reason);
  context.signal.addEventListener("abort", onAbort, { once: true });
  left.signal.addEventListener("abort", () => context.signal.removeEventListener("abort", onAbort));
  if (context.signal.aborted) onAbort();

  async function* send(): AsyncGenerator<Uint8Array, void, undefined> {
    isSending = true;
    try {
      for (; ; next++) {
        pump();
        const entry = await ready();
        if (entry === undefined) return;
        const bytes = entry.state.kind === "held" ? entry.state.bytes : new Uint8Array();
        if (bytes.length > 0) yield bytes;
        entry.state = { kind: "sent" };
        held -= bytes.length;
      }
    } finally {
      close();
    }
  }

  /** The entry whose turn it is, once its bytes are here. */
  const ready = async (): Promise<Entry | undefined> => {
    for (;;) {
      const entry = entries[next];
      if (entry === undefined || entry.state.kind === "held") return entry;
      if (entry.state.kind === "kept") {
        const kept = entries.slice(next, next + LOOKUP_AGAIN).filter(({ state }) => state.kind === "kept");
        await lookUpEntries(kept, HOLD_FOUND_BYTES);
        pump();
      } else {
        await waitForChange();
      }
    }
  };

  return {
    found: {
      get pieces() {
        return foundPieces;
      },
      from: foundFrom,
    },
    nodes,
    isStored: () => isStored,
    close,
    chunks: send(),

    lookUp: async () => {
      const perBatch = Math.max(1, Math.floor(LOOKUP_KEYS / 2));
      for (let at = 0; at < entries.length; at += perBatch) {
        await lookUpEntries(entries.slice(at, at + perBatch), HOLD_FOUND_BYTES);
      }
      foundPieces = entries.filter(({ state }) => state.kind !== "missing").length;
    },

    fetchRecent: async () => {
      pump();
      while (inFlight > 0) await waitForChange();
    },
  };
};
