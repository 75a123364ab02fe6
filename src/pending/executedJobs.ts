import type { ExecutedFlashblock } from "./executedFlashblock.ts";
import type { Layer } from "./stateLayers.ts";

/** The jobs that were executed above the base block. */
export class ExecutedJobs {
  readonly #executed = new Map<number, ExecutedFlashblock>();
  /** The base includes the jobs up to this id. */
  #passedThrough = 0;

  /** Returns a copy that later changes do not affect. */
  fork(): ExecutedJobs {
    const fork = new ExecutedJobs();
    fork.#passedThrough = this.#passedThrough;
    for (const [id, executed] of this.#executed) {
      fork.#executed.set(id, executed);
    }
    return fork;
  }

  has(id: number): boolean {
    return this.#executed.has(id);
  }

  add(executed: ExecutedFlashblock): void {
    this.#executed.set(executed.id, executed);
  }

  /** Returns the jobs from this one down to the base. Throws if one is unknown, because this thread may have replaced another. */
  ancestors(from: number | undefined): readonly ExecutedFlashblock[] {
    const ancestors: ExecutedFlashblock[] = [];
    for (let id = from; id !== undefined && id > this.#passedThrough; id = ancestors.at(-1)?.before) {
      const executed = this.#executed.get(id);
      if (!executed) {
        throw new Error("the job that this one starts from was not executed in this thread");
      }
      ancestors.push(executed);
    }
    return ancestors;
  }

  /** Returns the layers of all jobs, newest first, or no layer if one is unknown. */
  layers(): readonly Layer[] {
    return layersOf([...this.#executed.values()].reverse()) ?? [];
  }

  /** The base block changed. `through`: the last job that it includes; `undefined` discards all jobs. */
  rebase(through: number | undefined): void {
    this.#passedThrough = through ?? this.#passedThrough;
    for (const id of this.#executed.keys()) {
      if (through === undefined || id <= through) {
        this.#executed.delete(id);
      }
    }
  }
}

/** Returns the layers of jobs in the same order, or `undefined` if one is unknown. */
export const layersOf = (jobs: readonly ExecutedFlashblock[]): readonly Layer[] | undefined => {
  const layers = jobs.flatMap(({ layer }) => layer ?? []);
  return layers.length === jobs.length ? layers : undefined;
};
