import { setImmediate as turn } from "node:timers/promises";
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

/** Works up to this one start from a base that no longer holds: a thread that is behind does not run them. */
let voidThrough = 0;
let lastReceived = 0;

/** Works and changes of base are taken in the order in which they came. Between two of them messages are let in: execution never waits by itself. */
let queue: Promise<void> = Promise.resolve();
const inOrder = (act: () => Promise<void> | void): void => {
  queue = queue.then(() => turn()).then(act);
};

const run = async ({ work, rules, isExecutable }: ToExecutor & { kind: "run" }): Promise<FromExecutor> => {
  const { id } = work;
  if (id <= voidThrough) return { kind: "void", id };
  try {
    return { kind: "done", id, execution: await runner.run(work, rules, isExecutable) };
  } catch (error) {
    return { kind: "failed", id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
};

const handle = (message: ToExecutor): void => {
  switch (message.kind) {
    case "run":
      lastReceived = message.work.id;
      inOrder(async () => send(await run(message)));
      break;
    case "rebase":
      if (message.through === undefined) voidThrough = lastReceived;
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
send({ kind: "ready" });
