import type { Worker } from "node:cluster";

/** A connection that node:cluster passes to a process. It closes its own copy when the process has accepted it. */
interface PassedHandle {
  close(...args: readonly unknown[]): void;
}

const isHandle = (value: unknown): value is PassedHandle =>
  typeof value === "object" && value !== null && "close" in value && typeof value.close === "function";

/**
 * Closes the connections that node:cluster passed to a process that ended before it accepted them.
 * Without this, the copy of the main process stays open, and the client waits for its own timeout.
 */
export const closeLostConnections = (worker: Worker): void => {
  const passed = new Set<PassedHandle>();
  const { process: child } = worker;
  const send = child.send.bind(child) as (...args: readonly unknown[]) => boolean;
  const track = (handle: PassedHandle): void => {
    const close = handle.close.bind(handle);
    handle.close = (...args) => {
      passed.delete(handle);
      close(...args);
    };
    passed.add(handle);
  };
  child.send = (...args: readonly unknown[]): boolean => {
    const handle = args[1];
    if (isHandle(handle)) {
      track(handle);
    }
    return send(...args);
  };
  worker.on("exit", () => {
    for (const handle of passed) {
      handle.close();
    }
  });
};
