import { parentPort, workerData } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import type { BlockId } from "../chain/heads.ts";
import { type Hash, ZERO_HASH } from "../chain/hex.ts";
import type { StateKeys, StateValues } from "../chain/stateReader.ts";
import { createEngines } from "../evm/referenceEngine.ts";
import type { ExecutorData, FromExecutor, ToExecutor } from "./executorMessages.ts";
import { createRunner } from "./runner.ts";

const MAX_CODE_BYTES = 128 * 1024 * 1024;

const port = parentPort;
if (port === null) throw new Error("the executor is a worker thread");
const { natives } = workerData as ExecutorData;
const send = (message: FromExecutor): void => port.postMessage(message);

let lastQuestion = 0;
const questions = new Map<number, { resolve(values: StateValues): void; reject(error: Error): void }>();
const fetch = (base: BlockId, keys: StateKeys): Promise<StateValues> =>
  new Promise((resolve, reject) => {
    const id = ++lastQuestion;
    questions.set(id, { resolve, reject });
    send({ kind: "need", id, base, keys });
  });

const runner = createRunner(
  {
    fetch,
    engine: createEngines(),
    codes: new LRUCache<Hash, Uint8Array>({ maxSize: MAX_CODE_BYTES, sizeCalculation: (code) => code.length + 1 }),
    isNative: (address) => natives.some((native) => address.startsWith(native)),
  },
  { number: 0n, hash: ZERO_HASH },
);

/** Works and changes of base are taken in the order in which they came; each starts on what the one before left. */
let queue: Promise<void> = Promise.resolve();
const inOrder = (act: () => Promise<void> | void): void => {
  queue = queue.then(act);
};

const handle = (message: ToExecutor): void => {
  switch (message.kind) {
    case "run":
      inOrder(async () => {
        const { id } = message.work;
        try {
          send({ kind: "done", id, execution: await runner.run(message.work, message.rules) });
        } catch (error) {
          send({
            kind: "failed",
            id,
            message: error instanceof Error ? (error.stack ?? error.message) : String(error),
          });
        }
      });
      break;
    case "rebase":
      inOrder(() => runner.rebase(message.base, message.through));
      break;
    case "values":
      questions.get(message.id)?.resolve(message.values);
      questions.delete(message.id);
      break;
    case "noValues":
      questions.get(message.id)?.reject(new Error(message.message));
      questions.delete(message.id);
      break;
  }
};

port.on("message", handle);
