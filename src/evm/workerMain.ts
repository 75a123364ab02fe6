import { parentPort } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import type { StateKeys, StateReader, StateValues } from "../core/stateReader.ts";
import type { Hash } from "../ethereum/hex.ts";
import { type Rules, UnknownRules } from "../ethereum/rules.ts";
import { RpcError } from "../jsonrpc/rpcError.ts";
import type { Engine } from "./engine.ts";
import { createKnownState, type KnownState } from "./knownState.ts";
import { NotExecutableError } from "./notExecutableError.ts";
import { createEngines } from "./referenceEngine.ts";
import type { FromWorker, ToWorker } from "./runMessages.ts";
import { runUntilStateComplete } from "./runUntilStateComplete.ts";

/** States whose values stay in a worker: those of the newest blocks, so that a call asked again asks for nothing. */
const MAX_STATES = 4;
const MAX_VALUES = 200_000;
const MAX_CODE_BYTES = 192 * 1024 * 1024;
/** A code that was called has its jump analysis with it: a slot for each byte, and its pushes. */
const BYTES_OF_CODE_BYTE = 17;

export interface WorkerContext {
  engine(rules: Rules): Engine;
  /** Runs until the state holds all that it reads. */
  withState<T>(run: (state: StateReader) => Promise<T>): Promise<T>;
}

/** What a worker can run, by name. Input and output are plain data. */
export type WorkerTasks = Readonly<Record<string, (input: never, host: WorkerContext) => Promise<unknown>>>;

/** The whole of a worker thread: takes one run at a time and answers it, or says what it lacks. */
export const workerMain = (runs: WorkerTasks): void => {
  const port = parentPort;
  if (port === null) throw new Error("runs are served in a worker thread");
  const engine = createEngines();
  const codes = new LRUCache<Hash, Uint8Array>({
    maxSize: MAX_CODE_BYTES,
    sizeCalculation: (code) => code.length * BYTES_OF_CODE_BYTE + 1,
  });
  const states = new LRUCache<string, KnownState>({ max: MAX_STATES });
  let waiting: { resolve(values: StateValues): void; reject(error: Error): void } | undefined;

  const send = (message: FromWorker) => port.postMessage(message);

  const knownState = (stateId: string, nativeContracts: readonly string[]): KnownState => {
    const known = states.get(stateId);
    if (known !== undefined && known.size < MAX_VALUES) return known;
    const fresh = createKnownState({
      codes,
      isNative: (address) => nativeContracts.some((native) => address.startsWith(native)),
    });
    states.set(stateId, fresh);
    return fresh;
  };

  const execute = async ({
    id,
    name,
    stateId,
    nativeContracts,
    input,
  }: ToWorker & { kind: "run" }): Promise<FromWorker> => {
    const run = runs[name];
    if (run === undefined) throw new Error(`no run is named ${name}`);
    let rounds = 0;
    const fetch = (keys: StateKeys) =>
      new Promise<StateValues>((resolve, reject) => {
        waiting = { resolve, reject };
        send({ kind: "need", id, keys });
      });
    const host: WorkerContext = {
      engine,
      withState: async (on) => {
        const settled = await runUntilStateComplete(knownState(stateId, nativeContracts), fetch, on);
        rounds += settled.rounds;
        return settled.result;
      },
    };
    const output = await run(input as never, host);
    return { kind: "done", id, output, rounds };
  };

  port.on("message", (message: ToWorker) => {
    if (message.kind === "values") waiting?.resolve(message.values);
    else if (message.kind === "noValues") waiting?.reject(new Error(message.message));
    else
      execute(message)
        .catch((error: unknown) => describeError(message.id, error))
        .then(send);
  });
  send({ kind: "ready" });
};

const describeError = (id: number, error: unknown): FromWorker => {
  if (error instanceof NotExecutableError || error instanceof UnknownRules)
    return { kind: "native", id, message: error.message };
  if (error instanceof RpcError) {
    const { code, message, data } = error;
    return { kind: "fault", id, fault: { code, message, ...(data === undefined ? {} : { data }) } };
  }
  return { kind: "failed", id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
};
