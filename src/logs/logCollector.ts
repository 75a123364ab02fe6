import type { RequestContext } from "../core/rpcSource.ts";
import { CachedSegments } from "./cachedSegments.ts";
import type { SegmentRange } from "./plan.ts";
import { type HashedFilter, type QueryOptions, RangeFetches } from "./rangeFetches.ts";
import { SegmentTable } from "./segmentTable.ts";

/** The segments of one query: looked up, fetched if they are missing, sent in ascending order. */
export class LogCollector {
  readonly #table: SegmentTable;
  readonly #fetches: RangeFetches;
  /** The segments' bytes in order. Memory of a chunk is released when the next chunk is requested. */
  readonly chunks = this.#send();

  constructor(ranges: readonly SegmentRange[], query: HashedFilter, context: RequestContext, options: QueryOptions) {
    this.#table = new SegmentTable(ranges, new CachedSegments(query.filterHash, context, options.store));
    this.#fetches = new RangeFetches(this.#table, query, context, options);
  }

  get found(): SegmentTable["firstLookup"] {
    return this.#table.firstLookup;
  }

  /** The nodes whose logs were used. */
  get nodes(): ReadonlySet<string> {
    return this.#fetches.nodes;
  }

  get isStored(): boolean {
    return this.#table.isStored;
  }

  /** Looks all segments up. */
  lookUp(): Promise<void> {
    return this.#table.lookUp();
  }

  /** Resolves when the recent segments are fetched and match the view. */
  async fetchRecent(): Promise<void> {
    this.#fetches.start();
    while (this.#fetches.inFlight > 0) {
      await this.#fetches.nextEnd();
    }
  }

  /** Ends all requests in flight. A reader that waits for a chunk gets the error. */
  close(error: unknown = new Error("The reader of the logs has left")): void {
    this.#fetches.close(error);
  }

  async *#send(): AsyncGenerator<Uint8Array, void, undefined> {
    this.#fetches.beginSending();
    try {
      for (;;) {
        this.#fetches.start();
        const bytes = await this.#nextChunk();
        if (bytes === undefined) {
          return;
        }
        if (bytes.length > 0) {
          yield bytes;
        }
        this.#table.markSent();
        this.#fetches.countMemory();
      }
    } finally {
      this.close();
    }
  }

  /** Waits for the bytes of the segment that is sent next; undefined after the last one. */
  async #nextChunk(): Promise<Uint8Array | undefined> {
    for (;;) {
      const state = this.#table.stateAt(this.#table.next);
      if (state === undefined) {
        return undefined;
      }
      if (state.kind === "buffered") {
        return state.bytes;
      }
      if (state.kind === "stored") {
        await this.#table.lookUpNext();
        this.#fetches.start();
      } else {
        await this.#fetches.nextEnd();
      }
    }
  }
}
