import type { RequestContext } from "./rpcSource.ts";

/** Copies a context with some fields replaced. A spread alone would lose the signal, which may be a getter. */
export const deriveContext = <C extends RequestContext>(context: C, changes: Partial<RequestContext>): C => ({
  ...context,
  signal: context.signal,
  ...changes,
});
