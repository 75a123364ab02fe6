import type { ChildProcess } from "node:child_process";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** One set for the whole process, because a signal is delivered once. */
const living = new Set<ChildProcess>();

const killAll = (): void => {
  for (const child of living) {
    child.kill("SIGKILL");
  }
};

const onSignal = (signal: NodeJS.Signals): void => {
  // Other listeners of the signal end the process in order, and their cleanup ends the children.
  if (process.listenerCount(signal) > 1) {
    return;
  }
  killAll();
  process.off(signal, onSignal);
  process.kill(process.pid, signal);
};

/** Ends a child together with this process (except on SIGKILL). Returns the function to call after the child has ended. */
export const endWithProcess = (child: ChildProcess): (() => void) => {
  if (living.size === 0) {
    process.on("exit", killAll);
    for (const signal of SIGNALS) {
      process.on(signal, onSignal);
    }
  }
  living.add(child);
  return () => {
    living.delete(child);
    if (living.size > 0) {
      return;
    }
    process.off("exit", killAll);
    for (const signal of SIGNALS) {
      process.off(signal, onSignal);
    }
  };
};
