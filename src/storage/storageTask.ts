import { setImmediate as turn } from "node:timers/promises";
import type { Transferable } from "node:worker_threads";
import type { StoredUsage, UsageBatch } from "../core/usageStore.ts";
import { Channel, Moved } from "../threads/channel.ts";
import type { ThreadTask } from "../threads/threadTask.ts";
import { type EntryChange, EntryDatabase, type FinalBlock, type StorageSize } from "./entryDatabase.ts";
import type { StateHead, StateTable } from "./stateTable.ts";
import { type StorageFault, storageFault } from "./storageFault.ts";

/** The result of an operation, or why it failed. After a failure that closed the folder, `open` must be called again. */
export type StorageOutcome<T> = { readonly value: T } | Failure;

interface Failure {
  readonly fault: StorageFault;
  readonly text: string;
  readonly isClosed: boolean;
}

export interface OpenFolder {
  readonly folder: string;
  readonly maxBytes: number;
}

/** A block of rows of a chain's known state. */
export interface StateRowsBlock {
  readonly chain: string;
  readonly number: number;
  readonly rows: Uint8Array;
}

/** The functions that the storage thread offers. */
export type StorageFunctions = {
  /** Opens the folder. `locked`: another process uses it. */
  readonly open: (body: OpenFolder) => StorageOutcome<StorageSize | "locked">;
  /** Returns one value per key. A key without an entry has none. */
  readonly read: (keys: readonly string[]) => Moved<StorageOutcome<Values>>;
  /** Writes all changes, or none. */
  readonly write: (changes: readonly EntryChange[]) => StorageOutcome<StorageSize>;
  readonly finalBlock: (part: string) => StorageOutcome<FinalBlock | undefined>;
  readonly setFinalBlock: (body: { readonly part: string; readonly block: FinalBlock }) => StorageOutcome<null>;
  /** Ends all entries of a part. */
  readonly clear: (part: string) => StorageOutcome<null>;
  /** Returns what the rows of a chain hold. */
  readonly stateHead: (chain: string) => StorageOutcome<StateHead | undefined>;
  readonly stateRows: (body: Omit<StateRowsBlock, "rows">) => Moved<StorageOutcome<Values>>;
  readonly setStateRows: (body: StateRowsBlock) => StorageOutcome<null>;
  /** From now on, the rows that the head names count. */
  readonly setStateHead: (body: { readonly chain: string; readonly head: StateHead }) => StorageOutcome<null>;
  readonly dropState: (chain: string) => StorageOutcome<null>;
  /** Adds the usage of a day, and returns the units of each row. A batch that was added is not added again. */
  readonly addUsage: (batch: UsageBatch) => StorageOutcome<readonly number[]>;
  /** Returns the usage of a day; undefined if nothing was counted. */
  readonly usage: (day: string) => StorageOutcome<StoredUsage | undefined>;
  /** Closes the folder, so that another process can use it. */
  readonly close: (body: null) => StorageOutcome<null>;
};

type Values = readonly (Uint8Array | undefined)[];

/** The folder is open for reads, although nothing can be written now. */
const ONLY_WRITES: ReadonlySet<StorageFault> = new Set(["full", "readonly"]);

const NOT_OPEN: Failure = { fault: "other", text: "the data folder is not open", isClosed: true };

/** The database of the thread, if the folder is open. */
class OpenDatabase {
  #database: EntryDatabase | undefined;
  /** Why the folder is not open. */
  #closed: Failure = NOT_OPEN;
  #isEvicting = false;

  open({ folder, maxBytes }: OpenFolder): StorageOutcome<StorageSize | "locked"> {
    try {
      this.#database ??= EntryDatabase.open(folder, maxBytes);
      return { value: this.#database?.size ?? "locked" };
    } catch (error) {
      return { fault: storageFault(error), text: String(error), isClosed: true };
    }
  }

  /** Runs an operation. A damaged database is replaced by an empty one. */
  run<T>(operate: (database: EntryDatabase) => T): StorageOutcome<T> {
    const database = this.#database;
    if (database === undefined) {
      return this.#closed;
    }
    try {
      return { value: operate(database) };
    } catch (error) {
      const fault = database.isRemoved ? "removed" : storageFault(error);
      if (ONLY_WRITES.has(fault)) {
        return { fault, text: String(error), isClosed: false };
      }
      this.#closed = { fault, text: String(error), isClosed: true };
      this.#abandon(database, fault);
      return this.#closed;
    }
  }

  write(changes: readonly EntryChange[]): StorageOutcome<StorageSize> {
    const outcome = this.run((database) => {
      database.write(changes);
      return database.size;
    });
    void this.#evict();
    return outcome;
  }

  writeState(write: (state: StateTable) => void): StorageOutcome<null> {
    const outcome = this.run((database) => {
      write(database.writableState);
      return null;
    });
    void this.#evict();
    return outcome;
  }

  addUsage(batch: UsageBatch): StorageOutcome<readonly number[]> {
    const outcome = this.run((database) => database.addUsage(batch));
    void this.#evict();
    return outcome;
  }

  /** Removes old entries in small steps. Reads come in between. */
  async #evict(): Promise<void> {
    if (this.#isEvicting) {
      return;
    }
    this.#isEvicting = true;
    try {
      for (let isDone = false; !isDone; await turn()) {
        const outcome = this.run((database) => database.evict());
        isDone = !("value" in outcome && outcome.value);
      }
    } finally {
      this.#isEvicting = false;
    }
  }

  /** Closes the database, after it was removed if its file is damaged. */
  #abandon(database: EntryDatabase, fault: StorageFault): void {
    this.#database = undefined;
    try {
      database.close(fault === "corrupt");
    } catch {
      // Its file may be gone. The caller has the fault that came first.
      return;
    }
  }

  close(): StorageOutcome<null> {
    const outcome = this.run((database) => {
      database.close(false);
      return null;
    });
    this.#database = undefined;
    this.#closed = NOT_OPEN;
    return outcome;
  }
}

const moved = (outcome: StorageOutcome<Values>): Moved<StorageOutcome<Values>> => {
  const values = "value" in outcome ? outcome.value : [];
  const transfer = values.flatMap((value): Transferable[] =>
    value?.buffer instanceof ArrayBuffer ? [value.buffer] : [],
  );
  return new Moved(outcome, transfer);
};

/** The code of the storage thread. */
export const storageTask: ThreadTask = (port) => {
  const open = new OpenDatabase();
  new Channel<Record<string, never>, StorageFunctions>(port, {
    open: (body) => open.open(body),
    read: (keys) => moved(open.run((database) => database.read(keys))),
    write: (changes) => open.write(changes),
    finalBlock: (part) => open.run((database) => database.finalBlock(part)),
    setFinalBlock: ({ part, block }) =>
      open.run((database) => {
        database.setFinalBlock(part, block);
        return null;
      }),
    clear: (part) =>
      open.run((database) => {
        database.clear(part);
        return null;
      }),
    stateHead: (chain) => open.run(({ state }) => state.head(chain)),
    stateRows: ({ chain, number }) => moved(open.run(({ state }) => [state.rows(chain, number)])),
    setStateRows: ({ chain, number, rows }) => open.writeState((state) => state.setRows(chain, number, rows)),
    setStateHead: ({ chain, head }) => open.writeState((state) => state.setHead(chain, head)),
    dropState: (chain) => open.writeState((state) => state.drop(chain)),
    addUsage: (batch) => open.addUsage(batch),
    usage: (day) => open.run((database) => database.usage(day)),
    close: () => open.close(),
  });
};
