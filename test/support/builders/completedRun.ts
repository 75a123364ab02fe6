import type { StateReader } from "../../../src/core/stateReader.ts";
import type { Engine } from "../../../src/evm/engine.ts";
import { complete, type Steps, type WorkerContext } from "../../../src/evm/reads/complete.ts";
import { type FetchedState, FetchRounds } from "../../../src/evm/reads/fetchRounds.ts";

/** The part of a thread that a run uses, on a state whose values are all known. */
export const knownContext = (engine: WorkerContext["engine"], reader: StateReader): WorkerContext => ({
  engine,
  complete: async (run) => {
    const fetch = async () => {
      throw new Error("all values are known");
    };
    const { result } = await complete(run, { readerOf: () => reader, fetch });
    return result;
  },
});

/** Completes a run of one step. Returns its result, and the number of rounds that fetched state. */
export const completeOne = async <T>(
  engine: Engine,
  execute: (reader: StateReader) => Promise<T>,
  fetched: FetchedState,
): Promise<{ readonly result: T; readonly rounds: number }> => {
  const run = {
    isWhole: true,
    createState: (reader: StateReader) => engine.createState(reader),
    execute: ({ step, reader }: Steps) => step(() => execute(reader)),
  };
  const rounds = new FetchRounds(run, fetched);
  const { result } = await complete(run, rounds);
  return { result, rounds: rounds.count };
};
