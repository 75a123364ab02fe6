import type { StateReadContext } from "../core/context.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";

export interface StateReadLimitOptions {
  /** Maximum of calls to nodes by which one request reads state. */
  readonly maxStateReads: number;
  /** The client's request, with all items of a batch. `charge` counts the calls against the client's rate limits. */
  readonly context: Pick<StateReadContext, "admission" | "caller">;
  /** Called with a request above the limit. */
  onExceeded(): void;
}

/** Creates the function that is called before an execution reads state from nodes. It throws RpcError above the limit. */
export const createStateReadLimit = ({ maxStateReads, context, onExceeded }: StateReadLimitOptions) => {
  const request = context.admission ?? { stateReads: 0 };
  return (calls: number): void => {
    if (request.stateReads + calls > maxStateReads) {
      onExceeded();
      throw new RpcError(
        CODES.SERVER,
        `execution aborted: the request reads more than ${maxStateReads} state values from nodes (simulate.maxStateReads)`,
      );
    }
    request.stateReads += calls;
    context.caller.charge?.(calls, "stateReads");
  };
};
