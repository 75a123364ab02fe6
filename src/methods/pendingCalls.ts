import type { RpcResponse } from "../core/rpcSource.ts";
import { MustForwardError } from "../evm/runs/evmWorkers.ts";
import { createCall, paramsTextOf } from "../jsonrpc/call.ts";
import { prefetchHintOfCall } from "../simulation/prefetchHints.ts";
import type { Simulator } from "../simulation/simulator.ts";
import type { PendingRead } from "./blockReadSpec.ts";
import { pendingCallBase } from "./executionBase.ts";
import { held } from "./held.ts";

type Run = "call" | "estimateGas" | "createAccessList";

/** Executes in the pending block on the view's state. Calls that must be forwarded go to the node's `pending`. */
const runPending =
  (method: string, run: Run) =>
  async ({ input, values, pending, atBase }: PendingRead): Promise<RpcResponse> => {
    const { chain, context } = input;
    const { newest } = pending;
    if (newest === undefined) {
      return atBase();
    }
    const call = createCall(method, values);
    const onNode = () => chain.reads.request({ ...call, retention: "never", canonicalParams: "" }, context);
    if (chain.execution === undefined) {
      return onNode();
    }
    const { simulator }: { readonly simulator: Simulator } = chain.execution;
    const base = pendingCallBase(input, chain.execution, { pending, newest }, prefetchHintOfCall(values));
    try {
      return held(await simulator[run](paramsTextOf(call), base, context), context);
    } catch (error) {
      if (error instanceof MustForwardError) {
        return onNode();
      }
      throw error;
    }
  };

export const pendingCall = runPending("eth_call", "call");
export const pendingEstimate = runPending("eth_estimateGas", "estimateGas");
export const pendingAccessList = runPending("eth_createAccessList", "createAccessList");
