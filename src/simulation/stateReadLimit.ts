import { CODES, RpcError } from "../jsonrpc/rpcError.ts";

export interface StateReadLimitOptions {
  /** Maximum of values that one request may read from nodes. */
  readonly maxStateReads: number;
  /** Counts the values against the client's rate limits. */
  readonly charge: ((calls: number, reason: "stateReads") => void) | undefined;
  /** Called with a request above the limit. */
  onExceeded(): void;
}

/** Creates the function that is called before values of one request are read from nodes. It throws RpcError above the limit. */
export const createStateReadLimit = ({ maxStateReads, charge, onExceeded }: StateReadLimitOptions) => {
  let total = 0;
  return (values: number): void => {
    total += values;
    if (total > maxStateReads) {
      onExceeded();
      throw new RpcError(
        CODES.SERVER,
        `execution aborted: it reads more than ${maxStateReads} state values from nodes (simulate.maxStateReads)`,
      );
    }
    charge?.(values, "stateReads");
  };
};
