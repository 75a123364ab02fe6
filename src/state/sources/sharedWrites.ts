import { setTimeout as wait } from "node:timers/promises";
import type { CacheEntry } from "../../cache/cacheEntry.ts";
import { isValueLease, type LeasedValues, type ValueLease } from "../../cache/leasedValues.ts";
import type { BlockId } from "../../core/heads.ts";
import { runSliced } from "../runSliced.ts";
import { readRows } from "../store/packedRows.ts";
import type { WriteSet, WriteSetFailure, WriteSetSourceKind } from "../writeSet.ts";
import { readTimeMs } from "./sourceNodes.ts";

export interface SharedWritesOptions {
  readonly values: Pick<LeasedValues, "take">;
  /** The origins of the nodes of the chain, by the name of the node. */
  readonly origins: ReadonlyMap<string, string>;
  /** Whether a write set that only this node has stated may be used here. */
  mayUse(node: string): boolean;
  /** A Redis that is slower is not asked for a time: each head would wait for it. */
  readonly maxReplyMs: number;
  blockTimeMs(): number;
}

/** Increased when the form or the meaning of a shared write set changes. Other versions have other keys. */
const FORMAT = 2;
/** A replica that starts reads the write sets since its last save. */
const STORED_SECONDS = 600;
/** A lease is longer than the read of a write set. */
const LEASE_MARGIN_MS = 1_000;
/** The replica waits this part of a block time for the value of another one. */
const WAITED_SHARE = 1 / 2;
const PAUSE_MS = 5_000;
/** The delays between two looks at a held lease. */
const FIRST_LOOK_MS = 20;
const MAX_LOOK_MS = 160;
/** Larger write sets are not shared. */
const MAX_BYTES = 4 * 1024 * 1024;

const isWriteSet = (found: WriteSet | ValueLease): found is WriteSet => "packed" in found;

/** A write set of one source, which Redis may have. */
interface Wanted {
  readonly key: string;
  readonly kind: WriteSetSourceKind;
  readonly block: BlockId;
  readonly signal: AbortSignal;
}

/**
 * Shares the write sets of paid sources among replicas by Redis: one reads a block's write set, the others take it. It names the
 * node that stated it, and this replica decides whether it uses values of that node. Without Redis, each reads for itself.
 */
export class SharedWrites {
  readonly #options: SharedWritesOptions;
  /** No lease is taken for a source that no node supports. */
  readonly #unsupported = new Set<WriteSetSourceKind>();
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: SharedWritesOptions) {
    this.#options = options;
  }

  /** Returns the write set of another replica, or else reads it, and gives it to the others. */
  async read(
    kind: WriteSetSourceKind,
    block: BlockId,
    signal: AbortSignal,
    readHere: () => Promise<WriteSet | WriteSetFailure>,
  ): Promise<WriteSet | WriteSetFailure> {
    const key = `writes${FORMAT}:${kind}:${block.hash}`;
    const found = this.#unsupported.has(kind) ? undefined : await this.#find({ key, kind, block, signal });
    if (found !== undefined && isWriteSet(found)) {
      return found;
    }
    const outcome = await readHere();
    this.#unsupported[outcome === "unsupported" ? "add" : "delete"](kind);
    if (found !== undefined) {
      void this.#give(found, outcome);
    }
    return outcome;
  }

  /** Waits for the lease of another replica for half a block time. Never rejects. */
  async #find(wanted: Wanted): Promise<WriteSet | ValueLease | undefined> {
    const endMs = performance.now() + this.#options.blockTimeMs() * WAITED_SHARE;
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
    const { values, blockTimeMs } = this.#options;
    const leaseMs = Math.ceil(readTimeMs(blockTimeMs()) + LEASE_MARGIN_MS);
    const taking = values.take(key, leaseMs);
    const taken = await Promise.race([taking, wait(Math.max(0, timeoutMs), undefined, { ref: false })]);
    if (taken === undefined) {
      this.#pausedUntilMs = performance.now() + PAUSE_MS;
      void taking
        .then((late) => (late !== "held" && isValueLease(late) ? late.release() : undefined))
        .catch(() => undefined);
    }
    return taken;
  }

  async #give(lease: ValueLease, outcome: WriteSet | WriteSetFailure): Promise<void> {
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

  /** Returns undefined for the write set of another block, and for one that this replica does not use. */
  async #parse(value: CacheEntry, { kind, block }: Wanted): Promise<WriteSet | undefined> {
    const { body: packed, source } = value;
    if (value.block?.hash !== block.hash || !this.#isUsable(kind, source)) {
      return undefined;
    }
    // Each row is looked at, because another process wrote them.
    await runSliced(readRows(packed));
    return { block, packed, node: source?.node, grade: "stated", isShared: true };
  }

  /** A write set without a node is proven by the block's header. */
  #isUsable(kind: WriteSetSourceKind, source: CacheEntry["source"]): boolean {
    const { origins, mayUse } = this.#options;
    return source === undefined
      ? kind === "accessList"
      : kind === "trace" && origins.get(source.node) === source.origin && mayUse(source.node);
  }
}
