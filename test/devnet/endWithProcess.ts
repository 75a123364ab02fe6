import type { ChildProcess } from "node:child_process";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** One set for the process, since a signal comes once for all. */
const living = new Set<ChildProcess>();

const killAll = (): void => {
  for (const child of living) {
    child.kill("SIGKILL");
  }
};

const onSignal = (signal: NodeJS.Signals): void => {
  // Whoever else listens ends in order, and the children with it.
  if (process.listenerCount(signal) > 1) {
    return;
  }
  killAll();
  process.off(signal, onSignal);
  process.kill(process.pid, signal);
};

/** A child that must not outlive this process, however that ends (SIGKILL aside). Returns what to call once it has ended. */
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
