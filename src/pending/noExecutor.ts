import type { Executor } from "./execution.ts";

const refuse = () => Promise.reject(new Error("this chain is not executed here"));

/** Executes nothing, for a chain whose rules are not known. The view has the feed's data, and the node answers state reads. */
export const noExecutor: Executor = {
  execute: refuse,
  executeRest: refuse,
  rebase: () => undefined,
  close: () => Promise.resolve(),
};
