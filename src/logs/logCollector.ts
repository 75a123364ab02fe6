import type { RequestContext } from "../core/rpcSource.ts";
import type { LogFilter } from "../ethereum/logFilter.ts";
import type { SlotOwner } from "../limits/fairScheduler.ts";
import type { FetchLogs } from "./fetchLogs.ts";
import { blocksOf } from "./fetchRange.ts";
import type { NodeLimits } from "./nodeLimits.ts";
import type { Piece } from "./plan.ts";
import type { FetchContext } from "./requestLogs.ts";
import type { SegmentStore } from "./segments.ts";
import { type ClaimedRange, createSegmentTracker, type SegmentTracker } from "./segmentTracker.ts";

/** What one query may hold of fetched and found logs that are not sent yet. */
const MAX_HELD_BYTES = 32 * 1024 * 1024;
/** Nothing new is asked for above this, so that what is in flight still finds room. */
const ADMIT_BELOW_BYTES = 20 * 1024 * 1024;
/** Recent pieces are fetched ahead of their turn up to this. */
const RECENT_FIRST_BYTES = 10 * 1024 * 1024;

class NoRoom extends Error {}
/** Made once: an abort without a reason makes an error with a stack each time. */
const ENDED = new Error("The span has ended");

export interface CollectOptions {
  readonly store: SegmentStore;
  readonly fetchLogs: FetchLogs;
  readonly limits: NodeLimits;
  /** Blocks of one span, from what the nodes allow. */
  readonly spanBlocks: (filterHash: string) => number;
  readonly maxSpans: number;
}

/** One query's pieces on their way: looked up, fetched where missing, given in order. */
export interface LogCollector {
  /** Looks all pieces up. */
  lookUp(): Promise<void>;
  /** Resolves when the recent pieces are fetched and fit the view. */
  fetchRecent(): Promise<void>;
  /** The pieces' bytes in order; memory is let go when the next is asked for. */
  readonly chunks: AsyncGenerator<Uint8Array, void, undefined>;
  readonly found: SegmentTracker["found"];
  readonly nodes: ReadonlySet<string>;
  readonly isStored: () => boolean;
  /** Ends what is in flight; whoever waits for a chunk gets the error. */
  close(error?: unknown): void;
}

export const collectLogs = (
  wanted: readonly Piece[],
  filter: LogFilter,
  filterHash: string,
  context: RequestContext,
  { store, fetchLogs, limits, spanBlocks, maxSpans }: CollectOptions,
): LogCollector => {
  const pieces = createSegmentTracker(wanted, filterHash, context.view.heads, store);
  const left = new AbortController();
  const signal = AbortSignal.any([context.signal, left.signal]);
  const asker: SlotOwner = { clientId: context.clientId, query: pieces, signal };
  const nodes = new Set<string>();
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

  const fetchSpan = async (span: ClaimedRange): Promise<void> => {
    const { from, to, final } = span;
    const blocks = blocksOf(span);
    const spanLeft = new AbortController();
    const waiting = AbortSignal.any([signal, spanLeft.signal]);
    let taken = 0;
    const take = (bytes: number) => {
      taken += bytes;
      pieces.countHeld(bytes);
      if (pieces.heldBytes <= MAX_HELD_BYTES || from === to) return;
      limits.overflowed(filterHash, blocks, taken);
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
    inFlight++;
    inFlightBlocks += blocks;
    try {
      const fetched = await fetchLogs({ from, to, filter, final }, fetchContext);
      for (const node of fetched.nodes) nodes.add(node);
      span.complete(fetched);
    } catch (error) {
      if (!(error instanceof NoRoom)) throw error;
      span.discard();
      pieces.evictBefore(next);
    } finally {
      // What else the span started has no reader any more.
      spanLeft.abort(ENDED);
      inFlight--;
      inFlightBlocks -= blocks;
      pieces.countHeld(-taken);
    }
  };

  const hasRoom = () => {
    const bytesPerBlock = limits.bytesPerBlock(filterHash);
    return pieces.heldBytes + inFlightBlocks * bytesPerBlock < (isSending ? ADMIT_BELOW_BYTES : RECENT_FIRST_BYTES);
  };

  /** Asks for the next missing pieces from `start` on; false where there are none or there is no room. */
  const startSpan = (start: number): boolean => {
    const at = pieces.nextMissing(start);
    if (at === -1 || (!hasRoom() && !(at === next && inFlight === 0))) return false;
    const span = pieces.claimRange(at, {
      memoryBlocks: limits.memoryBlocks(filterHash),
      spanBlocks: spanBlocks(filterHash),
    });
    if (span === undefined) return false;
    fetchSpan(span)
      .catch(close)
      .finally(() => {
        pump();
        wake();
      });
    return true;
  };

  const pump = () => {
    if (failure !== undefined || signal.aborted) return;
    const start = isSending ? next : pieces.firstRecent();
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
        const bytes = await ready();
        if (bytes === undefined) return;
        if (bytes.length > 0) yield bytes;
        pieces.sent(next);
      }
    } finally {
      close();
    }
  }

  /** The bytes of the piece whose turn it is, once they are here; undefined behind the last. */
  const ready = async (): Promise<Uint8Array | undefined> => {
    for (;;) {
      const state = pieces.stateAt(next);
      if (state === undefined) return undefined;
      if (state.kind === "held") return state.bytes;
      if (state.kind === "kept") {
        await pieces.lookUpAgain(next);
        pump();
      } else {
        await waitForChange();
      }
    }
  };

  return {
    found: pieces.found,
    nodes,
    isStored: () => pieces.isStored,
    close,
    chunks: send(),
    lookUp: pieces.lookUp,
    fetchRecent: async () => {
      pump();
      while (inFlight > 0) await waitForChange();
    },
  };
};
