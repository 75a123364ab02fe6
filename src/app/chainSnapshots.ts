import { RedisSnapshots } from "../cache/redisSnapshots.ts";
import type { HeldAnswers } from "../state/calls/storedAnswers.ts";
import { ChainSnapshot, type ChainSnapshotOptions, type RestorableState, type SavedState } from "./chainSnapshot.ts";
import type { ReadPipeline } from "./createReadPipeline.ts";

export interface ChainSnapshotsOptions extends Omit<ChainSnapshotOptions, "storage" | "isShared"> {
  /** Undefined without a data folder. */
  readonly storage: ChainSnapshotOptions["storage"] | undefined;
  readonly pipeline: Pick<ReadPipeline, "runScript">;
}

/** What a start restores. */
interface EmptyState extends RestorableState {
  readonly answers: HeldAnswers;
}

/** The snapshots of one chain's known state: that of the data folder first, then that of Redis. */
export class ChainSnapshots {
  readonly #snapshots: readonly ChainSnapshot[];

  constructor({ storage, ...options }: ChainSnapshotsOptions) {
    const { runScript } = options.pipeline;
    this.#snapshots = [
      ...(storage ? [new ChainSnapshot({ ...options, storage, isShared: false })] : []),
      ...(runScript ? [new ChainSnapshot({ ...options, storage: new RedisSnapshots(runScript), isShared: true })] : []),
    ];
  }

  /** Whether there is a place for them: a data folder, or Redis. */
  get areStored(): boolean {
    return this.#snapshots.length > 0;
  }

  /** Whether known values may be restored ones. */
  get isWatched(): boolean {
    return this.#snapshots.some(({ isWatched }) => isWatched);
  }

  /** Restores what was known before a restart, into empty values, from the first snapshot that can be used. Never rejects. */
  async restore(state: EmptyState): Promise<void> {
    for (const snapshot of this.#snapshots) {
      await snapshot.restore(state);
      if (state.values.head !== undefined) {
        return;
      }
      // What it has was damaged, or cannot be used.
      state.answers.clear();
    }
  }

  /** Goes on for a chain that this one replaces, with its values. */
  succeed(before: ChainSnapshots): void {
    for (const [index, snapshot] of this.#snapshots.entries()) {
      const other = before.#snapshots[index];
      if (other) {
        snapshot.succeed(other);
      }
    }
  }

  /** Saves this state again and again from now on. */
  begin(saved: SavedState): void {
    for (const snapshot of this.#snapshots) {
      snapshot.begin(saved);
    }
  }

  /** Writes what is known now. Never rejects. */
  async save(): Promise<void> {
    await Promise.all(this.#snapshots.map((snapshot) => snapshot.save()));
  }

  /** Called when all values were dropped. */
  endWatch(): void {
    for (const snapshot of this.#snapshots) {
      snapshot.endWatch();
    }
  }

  /** Removes the snapshots, because a restored value was wrong. */
  discard(): void {
    for (const snapshot of this.#snapshots) {
      snapshot.discard();
    }
  }

  /** Replaces the snapshots by those of now, because they trust the giver of a wrong value. */
  replace(): void {
    for (const snapshot of this.#snapshots) {
      snapshot.replace();
    }
  }

  /** Ends the saving: another chain has the values now, or none. */
  end(): void {
    for (const snapshot of this.#snapshots) {
      snapshot.end();
    }
  }
}
