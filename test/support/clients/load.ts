import type { ChainCall } from "../servers/sealedChain.ts";
import { type Asked, ask } from "./askAll.ts";

export interface RunningLoad {
  /** Number of responses so far. */
  readonly count: number;
  /** Resolves after this number of further responses. */
  more(answers: number): Promise<void>;
  /** Stops, and returns all responses. Rejects if a request got no response. */
  stop(): Promise<readonly Asked[]>;
}

/** Repeats the calls, `atOnce` at a time, until it is stopped. */
export const startLoad = (url: string, calls: readonly ChainCall[], atOnce: number): RunningLoad => {
  const answers: Asked[] = [];
  const waiting = new Set<() => void>();
  let next = 0;
  let stopped = false;
  const worker = async () => {
    while (!stopped) {
      const call = calls[next++ % calls.length];
      if (call === undefined) {
        return;
      }
      answers.push(await ask(url, call));
      for (const check of waiting) {
        check();
      }
    }
  };
  const running = Promise.all(Array.from({ length: atOnce }, worker));
  return {
    get count() {
      return answers.length;
    },
    more: (count) => {
      const end = answers.length + count;
      const reached = new Promise<void>((resolve) => {
        const check = () => {
          if (answers.length < end) {
            return;
          }
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
      });
      return Promise.race([reached, running.then(() => {})]);
    },
    stop: async () => {
      stopped = true;
      await running;
      return answers;
    },
  };
};
