import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A child process that answers messages. */
export interface Child {
  readonly pid: number;
  /** Resolves with its next message. */
  message(): Promise<unknown>;
  send(message: object | string): void;
  end(): Promise<void>;
}

export const startChild = (file: string, args: readonly string[] = []): Child => {
  const child: ChildProcess = fork(fileURLToPath(new URL(file, import.meta.url)), args);
  const ended = once(child, "exit");
  return {
    pid: child.pid ?? 0,
    message: async () => {
      const [message] = await Promise.race([
        once(child, "message"),
        ended.then(([code]) => Promise.reject(new Error(`${file} ended with ${code}`))),
      ]);
      return message;
    },
    send: (message) => child.send(message),
    end: async () => {
      if (child.exitCode !== null) {
        return;
      }
      child.kill();
      await ended;
    },
  };
};
