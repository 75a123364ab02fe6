import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { type BlockId, type Heads, isCanonicalIn } from "../../core/heads.ts";
import { timeoutSignal } from "../../core/lazySignal.ts";
import { type Hash, isHash } from "../../ethereum/hex.ts";
import type { DataStorage } from "../../storage/dataStorage.ts";
import type { StateHead } from "../../storage/stateTable.ts";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { StoredCall } from "../calls/storedCall.ts";
import type { StateCost } from "../cost.ts";
import { runSlicedWhile } from "../runSliced.ts";
import { maxMissingBlocks, type StateFollower } from "../stateFollower.ts";
import { RESTORED, type ValueStore } from "../store/valueStore.ts";
import { packRows, RowsReader, type WrittenRows } from "./changedRows.ts";

/** Increased when the form of rows changes. Rows of another format are dropped. */
const FORMAT = 1;
/** A killed process loses what became known since. On the fastest chains too, fewer blocks come than may be missing. */
const INTERVAL_MS = 45_000;
/** The thread opens the folder while the chain reads its first head. */
const OPEN_MS = 1_000;
/** All rows that are written at once take at most this part of the folder, and those of later changes as much again. */
const MAX_SHARE = 1 / 16;
/** Below this size, rows of changes are not worth writing all rows again. */
const MIN_CHANGED_BYTES = 256 * 1024;
/** The end of the process waits this long for a save. A million values take 3 to 8 s. */
export const STATE_SAVE_MS = 10_000;

const count = z.number().nonnegative();

/** For what rows hold. */
const headText = z.object({
  format: z.literal(FORMAT),
  rules: z.string(),
  /** Name and URL of each node, as digests. Nobody knows which values are of a node that is gone. */
  nodes: z.array(z.string()),
  /** The block at which the values are known. */
  number: z.string().regex(/^\d+$/),
  hash: z.custom<Hash>(isHash),
  costs: z.object({ repeatedUnits: count, blocks: count }),
});

/** What the rows of a chain say about it. */
export interface RowsOwner {
  /** Chains with one chain id and genesis can be different ones: a fork beside its origin. */
  readonly name: string;
  /** A digest of the rules, and of options on which values depend. */
  readonly rules: string;
  readonly nodes: readonly string[];
}

export interface StateRowsOptions {
  readonly chain: string;
  readonly storage: Pick<
    DataStorage,
    "maxBytes" | "onOpened" | "stateHead" | "stateRows" | "setStateRows" | "setStateHead" | "dropState"
  >;
  readonly heads: { readonly blockTimeMs: number; current(): Heads | undefined };
  readonly telemetry: Pick<Telemetry, "log">;
  /** Aborts when the chain is closed. */
  readonly signal: AbortSignal;
  owner(): RowsOwner;
  /** Waits until it is known whether a block is canonical, but not long. */
  untilLinked(block: BlockId): Promise<void>;
}

/** The values to which those of rows are added. */
export interface RestorableState {
  readonly values: ValueStore;
  readonly cost: Pick<StateCost, "recent" | "resume">;
  /** The units of a write set. */
  readonly unitsPerBlock: number;
  addCalls(calls: readonly StoredCall[]): void;
}

/** What is saved, with its follower. */
export interface SavedState extends RestorableState {
  readonly follower: Pick<StateFollower, "untilApplied" | "beginAt">;
  /** Lists the calls that can be executed again. */
  calls(): Iterator<StoredCall | undefined>;
}

/** The rows that count, and for what they hold. Later rows are of what changed since. */
interface Base extends WrittenRows {
  readonly block: BlockId;
  readonly beginnings: number;
  readonly last: number;
  /** Bytes of the rows that were written at once, and of later ones. */
  readonly bytes: number;
  readonly changedBytes: number;
}

/**
 * The known state of one chain in the data folder: values, codes and calls, in rows. What changed is written from time to time and at
 * the end. Rows are never replaced: newer ones count, and if they are too many, all are written again.
 */
export class StateRows {
  readonly #options: StateRowsOptions;
  #saved: SavedState | undefined;
  #base: Base | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #drops = 0;
  /** Another process has the folder, whose rows may be restored later. */
  #isAwaited = false;
  #unsubscribe: (() => void) | undefined;

  constructor(options: StateRowsOptions) {
    this.#options = options;
  }

  /** Restores what was known before a restart, into empty values. If the folder is not open, `begin` awaits it. Never rejects. */
  async restore(state: RestorableState): Promise<void> {
    this.#isAwaited = !(await this.#untilOpen());
    if (!this.#isAwaited) {
      await this.#restore(state, async (block) => {
        state.values.begin(block);
        return true;
      });
    }
  }

  /** Goes on with the rows of the chain that this one replaces. */
  continueFrom(before: StateRows): void {
    this.#isAwaited = before.#isAwaited;
    this.#base = before.#base;
  }

  /** Saves this state again and again from now on, and restores the rows of a process that had the folder until then. */
  begin(saved: SavedState): void {
    this.#saved = saved;
    this.#timer ??= setInterval(() => void this.save(), INTERVAL_MS).unref();
    if (this.#isAwaited) {
      this.#unsubscribe ??= this.#options.storage.onOpened(() => void this.#takeOver(saved));
    }
  }

  /** Ends the saving: another chain has the values now. */
  end(): void {
    clearInterval(this.#timer);
    this.#unsubscribe?.();
    this.#saved = undefined;
  }

  /** Ends the rows: what they hold was dropped. */
  drop(): void {
    this.#drops++;
    this.#base = undefined;
    // If another process has the folder, its rows stay.
    void this.#options.storage.dropState(this.#options.owner().name);
  }

  /** Writes what changed, unless no block came since. Never rejects. */
  save(): Promise<void> {
    const saved = this.#saved;
    const head = saved?.values.head;
    const isUnchanged = head === undefined || head.hash === this.#base?.block.hash || saved?.values.isChecked !== true;
    if (saved === undefined || isUnchanged || this.#isAwaited) {
      return this.#writing ?? Promise.resolve();
    }
    this.#writing ??= this.#write(saved, head)
      .catch((err: unknown) => {
        this.#base = undefined;
        this.#options.telemetry.log.error({ chain: this.#options.chain, err }, "known state was not written");
      })
      .finally(() => {
        this.#writing = undefined;
      });
    // A disk that hangs must not keep the process.
    return Promise.race([this.#writing, wait(STATE_SAVE_MS, undefined, { ref: false })]);
  }

  async #write(saved: SavedState, block: BlockId): Promise<void> {
    const { storage } = this.#options;
    const { values, cost } = saved;
    const owner = this.#options.owner();
    const stored = await storage.stateHead(owner.name);
    const base = this.#usableBase(values, stored);
    // A save that fails has marked changes as stored.
    this.#base = undefined;
    const { beginnings } = values;
    const drops = this.#drops;
    const isCurrent = (): boolean =>
      saved === this.#saved && drops === this.#drops && beginnings === values.beginnings && values.isApplied(block);
    const written = { codes: new Set(base?.codes), calls: new Set(base?.calls) };
    const maxBytes = Math.floor(storage.maxBytes * MAX_SHARE);
    const before = stored?.last ?? 0;
    let last = before;
    let bytes = 0;
    for await (const rows of packRows(saved, block, { since: base?.block, written, maxBytes })) {
      last++;
      bytes += rows.length;
      if (!isCurrent() || !(await storage.setStateRows(owner.name, last, rows))) {
        return;
      }
    }
    const isComplete = isCurrent() && (base === undefined || values.isApplied(base.block));
    const text = JSON.stringify({
      ...{ format: FORMAT, rules: owner.rules, nodes: [...owner.nodes], costs: cost.recent },
      ...{ number: String(block.number), hash: block.hash },
    } satisfies z.input<typeof headText>);
    const first = base === undefined ? before + 1 : (stored?.first ?? 0);
    if (isComplete && (await storage.setStateHead(owner.name, { first, last, text })) && drops === this.#drops) {
      const sizes =
        base === undefined
          ? { bytes, changedBytes: 0 }
          : { bytes: base.bytes, changedBytes: base.changedBytes + bytes };
      this.#base = { ...written, ...sizes, block, beginnings, last };
    }
  }

  /** Returns the rows to which those of changes can be added. */
  #usableBase(values: ValueStore, stored: StateHead | undefined): Base | undefined {
    const base = this.#base;
    const isUsable =
      base !== undefined &&
      base.last === stored?.last &&
      base.beginnings === values.beginnings &&
      values.isApplied(base.block) &&
      base.changedBytes <= Math.max(MIN_CHANGED_BYTES, base.bytes);
    return isUsable ? base : undefined;
  }

  /** Adds the values of the process before to those that this one has learned meanwhile. */
  async #takeOver(saved: SavedState): Promise<void> {
    if (this.#isAwaited && saved === this.#saved) {
      await this.#restore(saved, async (block) => {
        await saved.follower.untilApplied(block);
        return saved === this.#saved && saved.follower.beginAt(block);
      });
      this.#isAwaited = false;
    }
  }

  /** `begin` makes a block readable. It returns false if values of it cannot be added. Never rejects. */
  async #restore(state: RestorableState, begin: (block: BlockId) => Promise<boolean>): Promise<void> {
    const { chain, storage, telemetry } = this.#options;
    const { name } = this.#options.owner();
    try {
      const stored = await storage.stateHead(name);
      if (stored !== undefined && stored.text !== "") {
        await this.#read(state, stored, begin);
      }
    } catch (err) {
      telemetry.log.warn({ chain, err }, "stored rows of known state are dropped");
      this.#base = undefined;
      await storage.dropState(name);
    }
  }

  /** Reads the newest rows first, and keeps what they hold if an older one is damaged. */
  async #read(state: RestorableState, stored: StateHead, begin: (block: BlockId) => Promise<boolean>): Promise<void> {
    const { chain, telemetry } = this.#options;
    const { values, cost } = state;
    const { rules, nodes } = this.#options.owner();
    const head = headText.parse(JSON.parse(stored.text));
    if (head.rules !== rules || !head.nodes.every((node) => nodes.includes(node))) {
      throw new Error("they are of other rules, options or nodes");
    }
    const block = await this.#findBlock(head, state);
    if (block !== undefined) {
      // They decide whether following goes on.
      cost.resume(head.costs, block.number);
    }
    const restoredAt = block !== undefined && (await begin(block)) ? block : undefined;
    if (restoredAt !== undefined) {
      values.sourceNodes.add(RESTORED);
      values.isChecked = false;
    }
    const reader = new RowsReader(values, restoredAt);
    const { beginnings } = values;
    const bytes = await this.#readBlocks(values, reader, stored);
    if (bytes === undefined) {
      return;
    }
    state.addCalls(reader.calls);
    if (restoredAt !== undefined) {
      this.#base = { ...reader.written, block: restoredAt, beginnings, last: stored.last, bytes, changedBytes: 0 };
    }
    telemetry.log.info(
      { chain, ...reader.counts, number: restoredAt?.number.toString() },
      "known state is restored from the data folder",
    );
  }

  /** Returns the bytes of all rows. Undefined: the rows, or what was known, were dropped meanwhile. */
  async #readBlocks(values: ValueStore, reader: RowsReader, { first, last }: StateHead): Promise<number | undefined> {
    const { storage } = this.#options;
    const { name } = this.#options.owner();
    const { beginnings } = values;
    const drops = this.#drops;
    const isCurrent = (): boolean => beginnings === values.beginnings && drops === this.#drops;
    let bytes = 0;
    values.isRestoring = values.sourceNodes.has(RESTORED);
    try {
      for (let number = last; number >= first && isCurrent(); number--) {
        const rows = await storage.stateRows(name, number);
        if (isCurrent()) {
          await runSlicedWhile(reader.read(rows), isCurrent);
          bytes += rows?.length ?? 0;
        }
      }
    } finally {
      values.isRestoring = false;
    }
    return isCurrent() ? bytes : undefined;
  }

  /** Returns the block of the rows if it is canonical, and following from there costs less than the reads of a minute. */
  async #findBlock({ number, hash, costs }: z.infer<typeof headText>, { unitsPerBlock }: RestorableState) {
    const { heads, untilLinked } = this.#options;
    const block = { number: BigInt(number), hash };
    const missing = Math.max(0, Number((heads.current()?.latest.number ?? block.number) - block.number));
    if (missing > maxMissingBlocks(heads.blockTimeMs) || missing * unitsPerBlock > costs.repeatedUnits) {
      return undefined;
    }
    await untilLinked(block);
    const current = heads.current();
    return isCanonicalIn(current, block) ? block : undefined;
  }

  /** Returns whether the folder is open. */
  async #untilOpen(): Promise<boolean> {
    const { storage, signal } = this.#options;
    const opened = Promise.withResolvers<boolean>();
    const unsubscribe = storage.onOpened(() => opened.resolve(true));
    const ending = AbortSignal.any([signal, timeoutSignal(OPEN_MS)]);
    ending.addEventListener("abort", () => opened.resolve(false), { once: true });
    const isOpen = await opened.promise;
    unsubscribe();
    return isOpen;
  }
}
