import type { MessagePort } from "node:worker_threads";
import type { FromJobThread, ToJobThread } from "./jobMessages.ts";

/** Runs one job. `request` asks the main thread for a value. It rejects if the main thread has none. */
export type RunJob = (input: unknown, request: (value: unknown) => Promise<unknown>) => Promise<unknown>;

/** The thread's side of a WorkerPool: runs one job at a time. A job has one open request at a time. */
export const serveJobs = (port: MessagePort, run: RunJob): void => {
  let openRequest: PromiseWithResolvers<unknown> | undefined;
  const send = (message: FromJobThread): void => port.postMessage(message);

  const execute = async (id: number, input: unknown): Promise<FromJobThread> => {
    const request = (value: unknown): Promise<unknown> => {
      openRequest = Promise.withResolvers();
      send({ kind: "request", id, request: value });
      return openRequest.promise;
    };
    try {
      return { kind: "done", id, output: await run(input, request) };
    } catch (error) {
      return { kind: "failed", id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
  };

  port.on("message", (message: ToJobThread) => {
    if (message.kind === "run") {
      void execute(message.id, message.input).then(send);
    } else if (message.kind === "reply") {
      openRequest?.resolve(message.value);
    } else {
      openRequest?.reject(new Error("the main thread has no value"));
    }
  });
};
