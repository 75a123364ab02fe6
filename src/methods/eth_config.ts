import type { Context } from "../core/context.ts";
import { isNull, parsedResult, type RpcRequest, type RpcResponse } from "../core/rpcSource.ts";
import { type Fields, isFields } from "../json/jsonBytes.ts";
import { createCall } from "../jsonrpc/call.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import type { Method, MethodChain } from "./method.ts";
import { parseParams } from "./paramSpec.ts";

const name = "eth_config";

/** A node learns of a new fork by an upgrade. It is asked again after this time of the chain. */
const RECHECK_SECONDS = 600n;

const activationOf = (fork: unknown): bigint | undefined =>
  isFields(fork) && Number.isSafeInteger(fork.activationTime) ? BigInt(Number(fork.activationTime)) : undefined;

/** Whether the fork that the node calls current has begun, and the next one has not. */
const isCurrent = ({ current, next }: Fields, timestamp: bigint): boolean => {
  const [began, begins] = [activationOf(current), activationOf(next)];
  return (began === undefined || began <= timestamp) && (begins === undefined || timestamp < begins);
};

const readConfig = async (chain: MethodChain, context: Context): Promise<RpcResponse> => {
  const { timestamp } = context.view.heads.latest;
  const canonicalParams = JSON.stringify([name, String(timestamp / RECHECK_SECONDS)]);
  const request: RpcRequest = { ...createCall(name, []), retention: "constant", canonicalParams };
  const response = await chain.reads.request(request, context);
  const config = isNull(response) ? undefined : parsedResult(response);
  const isStale = response.status.hit !== undefined && isFields(config) && !isCurrent(config, timestamp);
  return isStale ? chain.reads.request(request, context.with({ bypassCache: true })) : response;
};

/** Returns the forks of a node (EIP-7910). The response is cached until the next fork that it names, for up to ten minutes. */
export const eth_config: Method = {
  name,
  retention: "fork",
  atPending: "none",
  handle: ({ chain, call, context }) => {
    parseParams(call.params, []);
    return retryOnBranchChange(chain, context, (at) => readConfig(chain, at));
  },
};
