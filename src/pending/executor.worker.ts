import { setImmediate as turn } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { LRUCache } from "lru-cache";
import type { StateValues } from "../core/stateReader.ts";
import { type Hash, ZERO_HASH } from "../ethereum/hex.ts";
import { createEngines } from "../evm/referenceEngine.ts";
import type { FetchState } from "./baseState.ts";
import type { ExecutorData, FromExecutor, ToExecutor } from "./executorMessages.ts";
import { createFlashblockExecutor } from "./flashblockExecutor.ts";
import { VoidWork } from "./stateRounds.ts";

const MAX_CODE_BYTES = 128 * 1024 * 1024;

/** The next block waits for the works of a sealed one: after this long it is executed on fetched state instead. */
const MAX_AFTER_SEALED_MS = 2_000;

const port = parentPort;
if (port === null) throw new Error("the executor is a worker thread");
const { nativeContracts } = workerData as ExecutorData;
const send = (message: FromExecutor): void => port.postMessage(message);

let lastQuestion = 0;
const questions = new Map<number, { resolve(values: StateValues): void; reject(error: Error): void }>();
const fetch: FetchState = (base, keys, wish) =>
  new Promise((resolve, reject) => {
    const id = ++lastQuestion;
    questions.set(id, { resolve, reject });
    send({ kind: "need", id, base, keys, wish });
  });

const runner = createFlashblockExecutor(
  {
    fetch,
    engine: createEngines(),
    codes: new LRUCache<Hash, Uint8Array>({ maxSize: MAX_CODE_BYTES, sizeCalculation: (code) => code.length + 1 }),
    isNative: (address) => nativeContracts.some((native) => address.startsWith(native)),
    onRetry: ({ environment, index }, { message }) =>
      send({ kind: "retry", number: environment.number, index, message }),
    isVoid: ({ id }) => id <= voidThrough,
    deadlineMs: ({ id }) => (sealed && id <= sealed.through ? sealed.atMs + MAX_AFTER_SEALED_MS : undefined),
  },
  { number: 0n, hash: ZERO_HASH },
);

/** Works up to this one start from a base that no longer holds: a thread that is behind does not run them. */
let voidThrough = 0;
let lastReceived = 0;
/** Works up to this one belong to a sealed block, and have not all ended. */
let sealed: { readonly through: number; readonly atMs: number } | undefined;

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
    if (error instanceof VoidWork) return { kind: "void", id };
    return { kind: "failed", id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
};

/** What was received so far is not run, and does not wait for state any more. */
const voidAll = (): void => {
  voidThrough = lastReceived;
  for (const { reject } of questions.values()) reject(new Error("the base is another one"));
  questions.clear();
};

const handle = (message: ToExecutor): void => {
  switch (message.kind) {
    case "run":
      lastReceived = message.work.id;
      if (message.isExecutable) runner.expect(message.work, message.rules);
      inOrder(async () => send(await run(message)));
      break;
    case "rebase":
      if (message.through === undefined) voidAll();
      sealed =
        message.through === undefined
          ? undefined
          : { through: message.through, atMs: sealed?.atMs ?? performance.now() };
      inOrder(() => {
        if (message.through === sealed?.through) sealed = undefined;
        runner.rebase(message.base, message.through);
      });
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
