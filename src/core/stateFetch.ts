import type { Call } from "../jsonrpc/call.ts";

/** What nodes returned for several reads. */
export interface StateOutcomes {
  /** One for each read, in order: a JSON value or an Error. */
  readonly outcomes: readonly unknown[];
  /** The node that gave all of them. Undefined if there were several, or if its name is not known. */
  readonly node?: string | undefined;
  /** Whether a second origin has stated all of them (see `RpcResponse`). */
  readonly isAgreed?: boolean | undefined;
}

/** Sends several reads of state. */
export type StateFetch = (calls: readonly Call[]) => Promise<StateOutcomes>;
