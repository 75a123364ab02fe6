import type { MessagePort } from "node:worker_threads";
import type { FromJobThread, JobInterrupts, ToJobThread } from "./jobMessages.ts";

/**
 * Runs one job. `request` asks the main thread for a value. It rejects if the main thread has none.
 * A long run must end soon after `isInterrupted` returns true: nobody waits for its output.
 */
export type RunJob = (
  input: unknown,
  request: (value: unknown) => Promise<unknown>,
  isInterrupted: () => boolean,
) => Promise<unknown>;

/** The thread's side of a WorkerPool: runs one job at a time. A job has one open request at a time. */
export const serveJobs = (port: MessagePort, run: RunJob): void => {
  let openRequest: PromiseWithResolvers<unknown> | undefined;
  const send = (message: FromJobThread): void => port.postMessage(message);

  const execute = async (id: number, input: unknown, interrupts: JobInterrupts): Promise<FromJobThread> => {
    const request = (value: unknown): Promise<unknown> => {
      openRequest = Promise.withResolvers();
      send({ kind: "request", id, request: value });
      return openRequest.promise;
    };
    try {
      const isInterrupted = (): boolean => Atomics.load(interrupts, 0) >= id;
      return { kind: "done", id, output: await run(input, request, isInterrupted) };
    } catch (error) {
      return { kind: "failed", id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) };
    }
  };

  port.on("message", (message: ToJobThread) => {
    if (message.kind === "run") {
      void execute(message.id, message.input, message.interrupts).then(send);
    } else if (message.kind === "reply") {
      openRequest?.resolve(message.value);
    } else {
      openRequest?.reject(new Error("the main thread has no value"));
    }
  });
};
