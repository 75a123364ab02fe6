import { timeoutSignal } from "../core/lazySignal.ts";
import type { UsageStore } from "../core/usageStore.ts";
import type { DiskFailure } from "../telemetry/cacheMetrics.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { type WorkerEntry, WorkerThread } from "../threads/workerThread.ts";
import { type EntryChange, type FinalBlock, partOf, type StorageSize } from "./entryDatabase.ts";
import type { StateHead } from "./stateTable.ts";
import type { OpenFolder, StorageFunctions, StorageOutcome } from "./storageTask.ts";

export interface DataStorageOptions extends OpenFolder {
  /** The entry of `storageTask`. */
  readonly entry: WorkerEntry;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
}

/** Another process has the lock, for example the one before a rolling restart. */
const LOCKED_RETRY_MS = 500;
/** The pause after a failure. A damaged database was removed, so that an empty one can be opened soon. */
const RETRY_MS = 10_000;
const DAMAGED_RETRY_MS = 500;
const MAX_HEAP_MIB = 128;
const YOUNG_HEAP_MIB = 4;
/** Limit for the last writes at the end of the process. */
export const FOLDER_CLOSE_MS = 2_000;

type StorageWorker = WorkerThread<StorageFunctions, Record<string, never>>;

/**
 * The data folder of this process, in a thread. While another process has it, nothing is stored. The entries of one chain are a part.
 * It is closed until somebody has compared it with the chain.
 */
export class DataStorage {
  readonly #options: DataStorageOptions;
  readonly #listeners = new Set<() => void>();
  /** The parts that were opened since the folder was. */
  readonly #parts = new Set<string>();
  /** Parts with an entry that must be removed, and could not be. */
  readonly #mustEmpty = new Set<string>();
  #thread: StorageWorker;
  #isOpen = false;
  /** The number of times that the folder was opened. */
  #openings = 0;
  #retry: NodeJS.Timeout | undefined;
  #emptying: NodeJS.Timeout | undefined;
  #writesPausedUntilMs = 0;
  /** A failure was logged, and no success since. */
  #isReported = false;
  #isClosed = false;

  constructor(options: DataStorageOptions) {
    this.#options = options;
    this.#thread = this.#startThread();
    options.telemetry.metrics.diskUp.set(0);
    void this.#open();
  }

  /** Whether entries of this part can be read and written now. */
  isOpen(part: string): boolean {
    return this.#isOpen && this.#parts.has(part);
  }

  /** Returns one value per key. Never rejects: after a failure there are no values. */
  async read(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    const openings = this.#openings;
    if (!keys.some((key) => this.isOpen(partOf(key)))) {
      return [];
    }
    const outcome = await this.#run((channel) => channel.call("read", keys));
    return openings === this.#openings && outcome !== undefined
      ? outcome.value.map((value, index) => (this.isOpen(partOf(keys[index] ?? "")) ? value : undefined))
      : [];
  }

  /** Resolves when the changes are written, or lost. Never rejects. */
  async write(changes: readonly EntryChange[]): Promise<void> {
    this.#closeParts(changes.filter(({ key }) => !this.isOpen(partOf(key))));
    const allowed = changes.filter(({ key }) => this.isOpen(partOf(key)));
    if (allowed.length === 0) {
      return;
    }
    const isPaused = performance.now() < this.#writesPausedUntilMs;
    const outcome = isPaused ? undefined : await this.#run((channel) => channel.call("write", allowed));
    if (outcome === undefined) {
      this.#closeParts(allowed);
    } else {
      this.#measure(outcome.value);
      this.#reportUp();
    }
  }

  /** Calls the listener whenever the folder is opened or works again, and now if it is open. Returns the function that ends this. */
  onOpened(listener: () => void): () => void {
    this.#listeners.add(listener);
    if (this.#isOpen) {
      listener();
    }
    return () => this.#listeners.delete(listener);
  }

  /** Opens a part. It is emptied before if `isRight` refuses the newest final block that it has. Rejects with the error of `isRight`. */
  async openPart(part: string, isRight: (block: FinalBlock) => Promise<boolean>): Promise<void> {
    if (!this.#isOpen || this.isOpen(part)) {
      return;
    }
    const openings = this.#openings;
    const known = await this.#run((channel) => channel.call("finalBlock", part));
    if (known === undefined) {
      return;
    }
    const isKept = this.#mustEmpty.has(part) || known.value === undefined || (await isRight(known.value));
    // An entry may have been removed while `isRight` waited.
    if (!isKept || this.#mustEmpty.has(part)) {
      const emptied = await this.#run((channel) => channel.call("clear", part));
      if (emptied === undefined) {
        return;
      }
      this.#mustEmpty.delete(part);
      this.#options.telemetry.log.warn({ part, block: known.value }, "stored entries are not of this chain: emptied");
    }
    if (this.#isOpen && openings === this.#openings) {
      this.#parts.add(part);
    }
  }

  /** Closes a part until it has been compared again. */
  closePart(part: string): void {
    this.#parts.delete(part);
  }

  /** Records the newest final block of an open part. */
  setFinalBlock(part: string, block: FinalBlock): void {
    if (this.isOpen(part)) {
      void this.#run((channel) => channel.call("setFinalBlock", { part, block }));
    }
  }

  /** See `cache.diskBytes`. */
  get maxBytes(): number {
    return this.#options.maxBytes;
  }

  /** Returns what the rows of a chain's known state hold. Undefined if there are none, or after a failure. */
  async stateHead(chain: string): Promise<StateHead | undefined> {
    return this.#isOpen ? (await this.#run((channel) => channel.call("stateHead", chain)))?.value : undefined;
  }

  /** Returns a block of rows. Undefined if there is none, or after a failure. */
  async stateRows(chain: string, number: number): Promise<Uint8Array | undefined> {
    return (await this.#run((channel) => channel.call("stateRows", { chain, number })))?.value[0];
  }

  /** Writes a block of rows, which counts once a head names it. Returns false after a failure. */
  async setStateRows(chain: string, number: number, rows: Uint8Array): Promise<boolean> {
    const body = { chain, number, rows };
    return this.#isOpen && (await this.#run((channel) => channel.call("setStateRows", body))) !== undefined;
  }

  /** Replaces what the rows of a chain hold. Returns false after a failure. */
  async setStateHead(chain: string, head: StateHead): Promise<boolean> {
    return this.#isOpen && (await this.#run((channel) => channel.call("setStateHead", { chain, head }))) !== undefined;
  }

  /** Ends the rows of a chain. */
  async dropState(chain: string): Promise<void> {
    await this.#run((channel) => channel.call("dropState", chain));
  }

  /** The usage of days. */
  readonly usage: UsageStore = {
    name: "folder",
    add: async (batch) => {
      if (performance.now() >= this.#writesPausedUntilMs) {
        return (await this.#require((channel) => channel.call("addUsage", batch))).value;
      }
      throw new Error("nothing can be written to the data folder");
    },
    read: async (day) => (await this.#require((channel) => channel.call("usage", day))).value,
  };

  /** Releases the folder after the writes that were sent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#emptying);
    const signal = timeoutSignal(FOLDER_CLOSE_MS);
    await this.#thread.channel.call("close", null, { signal }).catch(() => undefined);
    this.#setClosed();
    await this.#thread.end();
  }

  #startThread(): StorageWorker {
    return new WorkerThread({
      entry: this.#options.entry,
      limits: { maxOldGenerationSizeMb: MAX_HEAP_MIB, maxYoungGenerationSizeMb: YOUNG_HEAP_MIB },
      functions: {},
      onLost: (error) => {
        this.#fail({ fault: "other", text: String(error), isClosed: true });
        this.#thread = this.#startThread();
      },
    });
  }

  async #open(): Promise<void> {
    const { folder, maxBytes, telemetry } = this.#options;
    const opened = await this.#thread.channel.call("open", { folder, maxBytes }).catch(() => undefined);
    if (opened === undefined || this.#isClosed) {
      return;
    }
    if (!("value" in opened)) {
      this.#fail(opened);
      return;
    }
    if (opened.value === "locked") {
      this.#report("locked", undefined);
      this.#openLater(LOCKED_RETRY_MS);
      return;
    }
    this.#measure(opened.value);
    telemetry.log.info({ folder, ...opened.value }, "data folder opened");
    this.#reportUp();
    this.#isOpen = true;
    this.#openings++;
    this.#publish();
  }

  #publish(): void {
    for (const listener of this.#listeners) {
      listener();
    }
  }

  #openLater(delayMs: number): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => void this.#open(), delayMs).unref();
  }

  /** Runs an operation on the open folder. Returns undefined after a failure. */
  async #run<T>(
    operate: (channel: StorageWorker["channel"]) => Promise<StorageOutcome<T>>,
  ): Promise<{ readonly value: T } | undefined> {
    const { channel } = this.#thread;
    const outcome = await operate(channel).catch(() => undefined);
    if (outcome === undefined || "value" in outcome) {
      return outcome;
    }
    // Later operations than the one that closed the folder fail too.
    if (this.#isOpen) {
      this.#fail(outcome);
    }
    return undefined;
  }

  /** Runs an operation on the open folder. Rejects after a failure, which is logged and counted. */
  async #require<T>(
    operate: (channel: StorageWorker["channel"]) => Promise<StorageOutcome<T>>,
  ): Promise<{ readonly value: T }> {
    const outcome = this.#isOpen ? await this.#run(operate) : undefined;
    if (outcome === undefined) {
      throw new Error("the data folder cannot be used");
    }
    return outcome;
  }

  #fail({ fault, text, isClosed }: Extract<StorageOutcome<never>, { readonly fault: unknown }>): void {
    this.#options.telemetry.metrics.diskErrors.inc({ reason: fault });
    this.#report(fault, text);
    if (!isClosed) {
      this.#writesPausedUntilMs = performance.now() + RETRY_MS;
      this.#emptyLater();
    } else if (!this.#isClosed) {
      this.#setClosed();
      this.#openLater(fault === "corrupt" ? DAMAGED_RETRY_MS : RETRY_MS);
    }
  }

  #setClosed(): void {
    this.#isOpen = false;
    this.#parts.clear();
    this.#options.telemetry.metrics.diskUp.set(0);
  }

  /** Closes the parts with entries that must be removed and are still there. */
  #closeParts(changes: readonly EntryChange[]): void {
    for (const { key, value } of changes) {
      const part = partOf(key);
      if (value === undefined) {
        this.#parts.delete(part);
        this.#mustEmpty.add(part);
        this.#emptyLater();
      }
    }
  }

  /** A part is emptied when it is opened, for which nothing else may ask: no value is written to closed parts. */
  #emptyLater(): void {
    this.#emptying ??= setTimeout(() => {
      this.#emptying = undefined;
      if (this.#isOpen && this.#mustEmpty.size > 0) {
        this.#publish();
      }
    }, RETRY_MS).unref();
  }

  /** Logs the first failure after a success. */
  #report(reason: DiskFailure | "locked", text: string | undefined): void {
    const { folder, telemetry } = this.#options;
    telemetry.metrics.diskUp.set(0);
    if (!this.#isReported) {
      this.#isReported = true;
      telemetry.log.warn({ folder, reason, text }, "the data folder cannot be used: continuing without it");
    }
  }

  #reportUp(): void {
    const { folder, telemetry } = this.#options;
    telemetry.metrics.diskUp.set(1);
    if (this.#isReported) {
      this.#isReported = false;
      telemetry.log.info({ folder }, "the data folder works again");
      if (this.#isOpen) {
        this.#publish();
      }
    }
  }

  #measure({ bytes, entries }: StorageSize): void {
    const { diskBytes, diskEntries } = this.#options.telemetry.metrics;
    diskBytes.set(bytes);
    diskEntries.set(entries);
  }
}
