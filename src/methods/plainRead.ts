import type { Heads } from "../core/heads.ts";
import type { RetentionClass } from "../core/retention.ts";
import { isNull, parsedResult, type RpcRequest, type RpcResponse } from "../core/rpcSource.ts";
import type { PendingView, View } from "../core/view.ts";
import { formatQuantity, type Hash } from "../ethereum/hex.ts";
import { formatJson, isFields } from "../json/jsonBytes.ts";
import { type Awaitable, type Call, createCall } from "../jsonrpc/call.ts";
import { headerNotFound } from "./blockParams.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import { HIDDEN, isHidden } from "./hiddenBlocks.ts";
import type { Method, MethodInput, Prove } from "./method.ts";
import { type CanonicalJson, hexOf, type ParamSpec, parseParams } from "./paramSpec.ts";
import { ofMode, viewResponse } from "./pendingReads.ts";

interface PlainRead {
  readonly name: string;
  readonly params: readonly ParamSpec[];
  readonly retention: Extract<RetentionClass, "constant" | "byHash" | "head" | "byTransaction" | "never">;
  readonly blockField?: RpcRequest["blockField"];
  /** `null` is retried on other nodes. */
  readonly nullIsError?: true;
  /** See `Method`. */
  readonly isSlow?: true;
  /** See `Method`. */
  readonly prove?: Prove;
}

/** Creates a method without a block number. Its retention class depends only on its params, or on the head. */
export const plainRead = ({ name, params, retention, blockField, nullIsError, isSlow, prove }: PlainRead): Method => {
  const parse = (call: Call): RpcRequest => {
    const values = parseParams(call.params, params);
    return {
      ...createCall(name, values),
      retention,
      canonicalParams: JSON.stringify([name, values]),
      ...(blockField && { blockField }),
      ...(nullIsError && { nullIsError }),
    };
  };
  return {
    name,
    retention,
    atPending: "none",
    ...(isSlow && { isSlow }),
    prove,
    handle: ({ chain, call, context }) => {
      const request = chain.parsedReads.get(call, parse);
      if (name.startsWith("eth_") && isHidden(context, String(request.params[0]))) {
        return HIDDEN;
      }
      return retryOnBranchChange(chain, context, (at) => chain.reads.request(request, at));
    },
  };
};

/** Returns a tip for the next block, in wei. */
export const eth_maxPriorityFeePerGas = plainRead({ name: "eth_maxPriorityFeePerGas", params: [], retention: "head" });

export interface ByHashRead extends PlainRead {
  /** Returns the value from the pending blocks. If it is undefined, the request goes to the nodes. */
  readonly inView: (pending: PendingView, hash: Hash, values: readonly CanonicalJson[]) => Uint8Array | undefined;
}

/** Creates a method that reads by the hash of a block or transaction. The view is tried first, because the hash may be pre-confirmed. */
export const byHashRead = (spec: ByHashRead, sealed: Method = plainRead(spec)): Method => {
  return {
    name: spec.name,
    retention: spec.retention,
    atPending: "view",
    ...(spec.isSlow && { isSlow: true }),
    prove: spec.prove,
    handle: (input) => {
      const { pending } = input.context.view;
      if (pending === undefined || pending.blocksFrom !== "view") {
        return sealed.handle(input);
      }
      const values = parseParams(input.call.params, spec.params);
      const body = spec.inView(pending, hexOf(values[0]), values);
      return body === undefined ? sealed.handle(input) : ofMode(pending.mode, viewResponse(body));
    },
  };
};

export const transactionInView: ByHashRead["inView"] = (pending, hash) => {
  const location = pending.find(hash);
  return location?.block.transaction(location.index);
};

export const receiptInView: ByHashRead["inView"] = (pending, hash) => {
  const location = pending.find(hash);
  return location?.block.receipt(location.index);
};

export const blockInView: ByHashRead["inView"] = (pending, hash, values) =>
  pending.byHash(hash)?.body(values[1] === true);

/** The newest blocks that are searched for a hash, so that requests with unknown hashes cost little. */
const MAX_SEARCHED = 256n;

const isServed = (hash: string, heads: Heads): boolean => {
  const end = heads.latest.number - MAX_SEARCHED;
  for (let { number } = heads.latest; number >= heads.oldest && number > end; number--) {
    if (heads.at(number)?.hash === hash) {
      return true;
    }
  }
  return false;
};

/**
 * Creates a method that reads by the hash of a block. If a node returns `null` for a recent block of the served chain, the request
 * is sent again, also to other nodes. If there is no other response, and the block is still served, it is an error
 * (docs/answers.md, Blocks and pending).
 */
export const servedBlockRead = (spec: PlainRead): Method => {
  const read = plainRead(spec);
  const readAgain = plainRead({ ...spec, nullIsError: true });

  const again = async (input: MethodInput, hash: string): Promise<RpcResponse> => {
    const response = await readAgain.handle(input);
    if (!isNull(response)) {
      return response;
    }
    const heads = await input.chain.heads.refresh(input.context).catch(() => input.context.view.heads);
    if (isServed(hash, heads)) {
      throw headerNotFound();
    }
    return response;
  };

  return {
    ...read,
    handle: (input) => {
      const accept = (response: RpcResponse): Awaitable<RpcResponse> => {
        if (!isNull(response)) {
          return response;
        }
        const { chain, context, call } = input;
        const hash = String(call.params[0]).toLowerCase();
        const acceptIn = ({ heads }: View) => (isServed(hash, heads) ? again(input, hash) : response);
        const reached = chain.heads.reach({ from: 0n, to: context.view.heads.latest.number }, context);
        return reached === undefined ? acceptIn(context.view) : reached.then(acceptIn);
      };
      const response = read.handle(input);
      return response instanceof Promise ? response.then(accept) : accept(response);
    },
  };
};

/** Reads the number of a transaction's block from a node; undefined if it has none. */
const readBlockNumber = async ({ chain, context }: MethodInput, hash: string): Promise<bigint | undefined> => {
  const name = "eth_getTransactionByHash";
  const response = await chain.reads.request(
    {
      ...createCall(name, [hash]),
      retention: "byTransaction",
      canonicalParams: JSON.stringify([name, [hash]]),
      blockField: "blockHash",
    },
    context,
  );
  const transaction = parsedResult(response);
  return isFields(transaction) && typeof transaction.blockNumber === "string"
    ? BigInt(transaction.blockNumber)
    : undefined;
};

/**
 * Creates a method that traces a transaction. It is cached only if the transaction's block is final.
 * A trace does not contain its block, and cannot be requested by block hash.
 */
export const transactionTrace = (name: string, params: readonly ParamSpec[]): Method => ({
  name,
  retention: "final",
  atPending: "none",
  isSlow: true,
  handle: async (input): Promise<RpcResponse> => {
    const { chain, call, context } = input;
    const values = parseParams(call.params, params);
    const request = { ...createCall(name, values), canonicalParams: JSON.stringify([name, values]) };
    // A node without the transaction's block may still trace it. Such a trace is not cached.
    const number = await readBlockNumber(input, String(values[0])).catch(() => undefined);
    const { finalized } = context.view.heads;
    return number !== undefined && finalized !== undefined && number <= finalized.number
      ? chain.reads.request({ ...request, retention: "final", block: { number } }, context)
      : chain.reads.request({ ...request, retention: "never" }, context);
  },
});

/** Returns the head of the request's view; no request is sent. It is proven if the hash of its header was computed. */
export const eth_blockNumber: Method = {
  name: "eth_blockNumber",
  retention: "computed",
  atPending: "none",
  prove: "byBlock",
  handle: async ({ chain, call, context }) => {
    parseParams(call.params, []);
    const { heads } = context.view;
    const { number, hash } = heads.latest;
    const header = heads.header(number);
    const isProven = header !== undefined && header.hash === hash && chain.ownHashes.hasComputed(header);
    return {
      body: formatJson(formatQuantity(number)),
      status: { hit: "view" },
      block: { number, hash },
      ...(isProven && { grade: "proven" }),
    };
  },
};

/** Returns the chain's known id; no request is sent, so that no node can answer for another chain. */
export const eth_chainId: Method = {
  name: "eth_chainId",
  retention: "computed",
  atPending: "none",
  handle: async ({ chain, call }) => {
    parseParams(call.params, []);
    return { body: formatJson(formatQuantity(chain.chainId)), status: { hit: "view" } };
  },
};

const forwardedVersion = plainRead({ name: "net_version", params: [], retention: "never" });

/** Returns the nodes' network id, which was read with their chain id. Without one, a node answers. */
export const net_version: Method = {
  name: "net_version",
  retention: "computed",
  atPending: "none",
  handle: (input) => {
    const { networkId } = input.chain;
    if (networkId === undefined) {
      return forwardedVersion.handle(input);
    }
    parseParams(input.call.params, []);
    return { body: formatJson(networkId), status: { hit: "view" } };
  },
};
