import { setTimeout as wait } from "node:timers/promises";
import type { CacheEntry } from "../../cache/cacheEntry.ts";
import { isValueLease, type LeasedValues, type ValueLease } from "../../cache/leasedValues.ts";
import type { BlockId } from "../../core/heads.ts";
import { runSliced } from "../runSliced.ts";
import { readRows } from "../store/packedRows.ts";
import type { WriteSet, WriteSetFailure, WriteSetSource } from "../writeSet.ts";

export interface SharedSourceOptions {
  readonly values: Pick<LeasedValues, "take">;
  /** The origins of the nodes of the chain, by the name of the node. */
  readonly origins: ReadonlyMap<string, string>;
  /** Whether a write set on the word of this node may be used here. */
  mayUse(node: string): boolean;
  /** A Redis that is slower is not asked for a time: each head would wait for it. */
  readonly maxReplyMs: number;
  blockTimeMs(): number;
}

/** Increased when the form or the meaning of a shared write set changes. Other versions have other keys. */
const FORMAT = 2;
/** A replica that starts reads the write sets since its last save. */
const STORED_SECONDS = 600;
/** Longer than the read of a write set, which has one block time, at least a second. */
const LEASE_MARGIN_MS = 1_000;
const MIN_READ_MS = 1_000;
/** The replica waits this part of a block time for the value of another one. */
const WAITED_SHARE = 1 / 2;
const PAUSE_MS = 5_000;
/** The delays between two looks at a held lease. */
const FIRST_LOOK_MS = 20;
const MAX_LOOK_MS = 160;
/** Larger write sets are not shared. */
const MAX_BYTES = 4 * 1024 * 1024;

/** What Redis has: a write set, the right to read one, or nothing that can be used. */
type Found = WriteSet | ValueLease | undefined;

const isWriteSet = (found: WriteSet | ValueLease): found is WriteSet => "packed" in found;

/**
 * Shares the write sets of a paid source among replicas: one reads a block's write set, the others take it from Redis. It names
 * the node on whose word it is, and this replica decides whether it trusts that node. Without Redis, the source is asked.
 */
export class SharedSource implements WriteSetSource {
  readonly #source: WriteSetSource;
  readonly #options: SharedSourceOptions;
  /** No lease is taken for a source that no node supports. */
  #isSupported = true;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(source: WriteSetSource, options: SharedSourceOptions) {
    this.#source = source;
    this.#options = options;
  }

  get kind(): WriteSetSource["kind"] {
    return this.#source.kind;
  }

  get unitsPerBlock(): number {
    return this.#source.unitsPerBlock;
  }

  read(block: BlockId, signal: AbortSignal): Promise<WriteSet | WriteSetFailure> {
    const key = `writes${FORMAT}:${this.kind}:${block.hash}`;
    return this.#read({ key, block, signal });
  }

  /** A write set without a node is proven by the block's header. */
  #isWanted(node: string | undefined): boolean {
    return node === undefined ? this.kind === "accessList" : this.kind === "trace" && this.#options.mayUse(node);
  }

  async #read(wanted: WantedWrites): Promise<WriteSet | WriteSetFailure> {
    const found = this.#isSupported ? await this.#find(wanted) : undefined;
    if (found !== undefined && isWriteSet(found)) {
      return found;
    }
    const outcome = await this.#source.read(wanted.block, wanted.signal);
    this.#isSupported = outcome !== "unsupported";
    if (found !== undefined) {
      void this.#end(found, outcome);
    }
    return outcome;
  }

  async #end(lease: ValueLease, outcome: WriteSet | WriteSetFailure): Promise<void> {
    const entry = typeof outcome === "string" ? undefined : this.#entryOf(outcome);
    await (entry === undefined ? lease.release() : lease.store(entry, STORED_SECONDS));
  }

  #entryOf({ block, node, packed: body }: WriteSet): CacheEntry | undefined {
    const { origins } = this.#options;
    const origin = node === undefined ? undefined : origins.get(node);
    if (body.length > MAX_BYTES || (node !== undefined && origin === undefined)) {
      return undefined;
    }
    const source = node === undefined || origin === undefined ? undefined : { node, origin };
    return { body, block: { number: block.number, hash: block.hash }, isFinal: false, storedAtMs: Date.now(), source };
  }

  /** Waits for the lease of another replica for half a block time. Never rejects. */
  async #find(wanted: WantedWrites): Promise<Found> {
    const { blockTimeMs } = this.#options;
    const endMs = performance.now() + blockTimeMs() * WAITED_SHARE;
    try {
      for (let lookMs = FIRST_LOOK_MS; performance.now() >= this.#pausedUntilMs; lookMs *= 2) {
        const taken = await this.#take(wanted.key, Math.min(this.#options.maxReplyMs, endMs - performance.now()));
        if (taken !== undefined && taken !== "held") {
          return isValueLease(taken) ? taken : await this.#parse(taken, wanted);
        }
        const delayMs = Math.min(lookMs, MAX_LOOK_MS);
        if (taken === undefined || performance.now() + delayMs >= endMs) {
          return undefined;
        }
        await wait(delayMs, undefined, { signal: wanted.signal });
      }
    } catch {
      // Redis failed, or the block is not awaited any more.
    }
    return undefined;
  }

  /** Returns undefined if Redis does not reply in time. A lease that it gives later is released. */
  async #take(key: string, timeoutMs: number) {
    const leaseMs = Math.ceil(Math.max(this.#options.blockTimeMs(), MIN_READ_MS) + LEASE_MARGIN_MS);
    const taking = this.#options.values.take(key, leaseMs);
    const taken = await Promise.race([taking, wait(Math.max(0, timeoutMs), undefined, { ref: false })]);
    if (taken === undefined) {
      this.#pausedUntilMs = performance.now() + PAUSE_MS;
      void taking
        .then((late) => (late !== "held" && isValueLease(late) ? late.release() : undefined))
        .catch(() => undefined);
    }
    return taken;
  }

  /** Returns undefined for the write set of another block, and for one that this replica does not trust. */
  async #parse({ body, block, source }: CacheEntry, wanted: WantedWrites): Promise<WriteSet | undefined> {
    const isKnown = source === undefined || this.#options.origins.get(source.node) === source.origin;
    if (block?.hash !== wanted.block.hash || !isKnown || !this.#isWanted(source?.node)) {
      return undefined;
    }
    // Each row is looked at, because it was another process that wrote them.
    await runSliced(readRows(body));
    return { block: wanted.block, packed: body, node: source?.node, grade: "stated", isShared: true };
  }
}

interface WantedWrites {
  readonly key: string;
  readonly block: BlockId;
  readonly signal: AbortSignal;
}
