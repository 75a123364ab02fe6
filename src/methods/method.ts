import type { BlockId, Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { RequestContext, RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import type { StateSource } from "../core/stateReader.ts";
import type { PendingChange } from "../core/view.ts";
import type { Address, Hash } from "../ethereum/hex.ts";
import type { LogFilter, LogFilterLimits } from "../ethereum/logFilter.ts";
import type { PrefetchHint } from "../evm/prefetch.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { Simulator } from "../simulation/simulator.ts";
import type { Filters } from "../subscriptions/polledFilters.ts";

/** What the methods of one chain are made of; `main` hands it over. */
export interface Chain {
  /** Configured, or returned by the first node that answered. */
  readonly chainId: bigint;
  /** Cache in front of shared requests in front of the nodes. */
  readonly reads: RpcSource;
  /** The nodes alone: writes, and methods outside the table. */
  readonly nodes: RpcSource;
  readonly heads: {
    /** Asks the nodes for their head now; shared, at most 500 ms. */
    refresh(): Promise<Heads>;
    readonly blockTimeMs: number;
  };
  readonly logs: {
    request(
      filter: LogFilter,
      blocks: BlockRange | { readonly blockHash: Hash },
      context: RequestContext,
    ): Promise<RpcResponse>;
  };
  readonly filters: Filters;
  readonly logLimits: LogFilterLimits & { readonly maxBlocks: number | undefined };
  /** What executes here; undefined where the chain's rules are not known, or it is switched off: nodes answer. */
  readonly execution:
    | {
        readonly simulator: Simulator;
        stateAt(block: BlockId, wish?: PrefetchHint): StateSource;
      }
    | undefined;
  /** Whether a simulation on the pending block has its number or the next. */
  readonly pendingNumber: "same" | "next";
  /** The pending nonce is at least the node's own. */
  readonly askNodeNonce: boolean;
  /** `nonce` raised over the consecutive transactions of that sender that a node accepted through any replica. */
  advanceNonce(sender: Address, nonce: bigint): Promise<bigint>;
  /** Called with each new view. */
  subscribe(listener: (change: PendingChange) => void): () => void;
  /** A node accepted this raw transaction through here. */
  accepted(raw: string): void;
}

/** One call on its way: everything that a method may use. */
export interface MethodInput {
  readonly chain: Chain;
  readonly call: Call;
  readonly context: RequestContext;
}

/**
 * How long answers of a method are kept (architecture.md, idea 1), told in README.
 * `block` and `state` are read at a block: final or recent; `final`: kept once it is final, else not.
 */
export type RetentionLabel =
  | "constant"
  | "byHash"
  | "byTransaction"
  | "block"
  | "state"
  | "logs"
  | "head"
  | "final"
  | "computed"
  | "never";

/** Who answers at `pending`: the view if there is one, the node, or nobody since the method has no such parameter. */
export type PendingBehaviour = "view" | "node" | "none";

/** One entry of the table. */
export interface Method {
  readonly name: string;
  readonly kept: RetentionLabel;
  readonly atPending: PendingBehaviour;
  answer(asked: MethodInput): Promise<RpcResponse>;
}

/** Forwards a call unchanged. It is never cached, coalesced or retried. */
export const forwarded = ({
  chain,
  call: { method, params, paramsText },
  context,
}: MethodInput): Promise<RpcResponse> => {
  const question: RpcRequest = { method, params, paramsText, retention: "never", canonicalParams: "", write: true };
  return chain.nodes.request(question, context);
};
