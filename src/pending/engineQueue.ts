import { setImmediate as turn } from "node:timers/promises";

/** Runs one job at a time, because an engine runs one message at a time. */
export interface EngineQueue {
  /** Runs the job before all idle jobs that wait. */
  urgent<T>(job: () => Promise<T>): Promise<T>;
  /** Runs the job when no urgent job waits. The thread receives its messages before. */
  idle<T>(job: () => Promise<T>): Promise<T>;
}

export const createEngineQueue = (): EngineQueue => {
  const urgent: (() => Promise<void>)[] = [];
  const idle: (() => Promise<void>)[] = [];
  let isRunning = false;

  const drain = async (): Promise<void> => {
    isRunning = true;
    for (;;) {
      if (urgent.length === 0 && idle.length > 0) {
        await turn();
      }
      const next = urgent.shift() ?? idle.shift();
      if (!next) {
        break;
      }
      await next();
    }
    isRunning = false;
  };

  const enter = <T>(queue: (() => Promise<void>)[], job: () => Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      queue.push(() => job().then(resolve, reject));
      if (!isRunning) {
        void drain();
      }
    });

  return { urgent: (job) => enter(urgent, job), idle: (job) => enter(idle, job) };
};
