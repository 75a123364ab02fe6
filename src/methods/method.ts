import type { Context, StateReadContext } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { NodeSource, RpcRequest, RpcResponse, RpcSource } from "../core/rpcSource.ts";
import type { StateSource } from "../core/stateReader.ts";
import type { PendingChange, View } from "../core/view.ts";
import type { Address } from "../ethereum/hex.ts";
import type { LogFilterLimits } from "../ethereum/logFilter.ts";
import type { ChainForks } from "../ethereum/rules.ts";
import type { Awaitable, Call } from "../jsonrpc/call.ts";
import type { SplitLogs } from "../logs/splitLogs.ts";
import type { Capabilities } from "../nodes/nodeCapabilities.ts";
import type { SubmittedTransaction } from "../pending/submittedTransaction.ts";
import type { Simulator } from "../simulation/simulator.ts";
import type { CallCache } from "../state/calls/callCache.ts";
import type { PrefetchHint } from "../state/fetch/prefetch.ts";
import type { StateField } from "../state/stateKey.ts";
import type { StateReads } from "../state/stateReads.ts";
import type { PolledFilters } from "../subscriptions/polledFilters.ts";
import type { Subscriptions } from "../subscriptions/subscriptions.ts";
import type { OwnHashes } from "../verification/checkHeader.ts";
import type { CommittedBlocks } from "./committedBlocks.ts";
import type { ParsedReads } from "./parsedReads.ts";
import type { ProvenBlocks } from "./provenBlocks.ts";

/** The dependencies of one chain's methods; `app/` provides them. */
export interface MethodChain {
  /** From the configuration, or from the first node that responded. */
  readonly chainId: bigint;
  /** What the nodes return for net_version. Undefined until one has returned it. */
  readonly networkId: string | undefined;
  /** By the configuration, or by the chain id. Undefined for a chain whose forks are not known. */
  readonly forks: ChainForks | undefined;
  /** The cache, in front of request coalescing, in front of the nodes. */
  readonly reads: RpcSource;
  /** The nodes alone: writes, and methods outside the table. */
  readonly nodes: NodeSource;
  /** What the usable nodes state of their data. */
  capabilities(): readonly Capabilities[];
  readonly parsedReads: ParsedReads;
  /** Of the headers in the block ring. */
  readonly ownHashes: OwnHashes;
  readonly committed: Pick<CommittedBlocks, "has">;
  /** Known state values. Undefined if they are not followed. */
  readonly state?: Pick<StateReads, "request" | "findProven" | "beginProof"> | undefined;
  /** Drops all known state, because a request can change a node's state without a block. */
  forgetState(): void;
  /** Responses to calls that hold for later blocks. Undefined if nodes answer all calls. */
  readonly callCache?: Pick<CallCache, "request"> | undefined;
  /** Proven parts of blocks, for clients that require them. */
  readonly provenBlocks: Pick<ProvenBlocks, "find" | "format">;
  readonly heads: {
    /**
     * Requests the head of all nodes now. Simultaneous calls share the requests, which take up to 500 ms. Returns the heads for the
     * context: behind by its confirmations.
     */
    refresh(context: Pick<Context, "behind">): Promise<Heads>;
    /**
     * Reads those of the newest 256 headers that the block ring lacks and the range has, as after a start. Undefined if there are
     * none. Returns the newest view for the context, with them; without them if no node has them within 2 s.
     */
    reach(range: BlockRange, context: Pick<Context, "behind">): Promise<View> | undefined;
    readonly blockTimeMs: number;
  };
  readonly logs: Pick<SplitLogs, "request">;
  readonly filters: PolledFilters;
  readonly subscriptions: Pick<Subscriptions, "subscribe" | "unsubscribe">;
  readonly logLimits: LogFilterLimits & { readonly maxBlocks: number | undefined };
  /** Executes calls in forebay. Undefined if the chain's rules are unknown or execution is disabled; then nodes answer. */
  readonly execution:
    | {
        readonly simulator: Simulator;
        stateAt(block: BlockId, hint: PrefetchHint | undefined, context: StateReadContext): StateSource;
      }
    | undefined;
  /** Whether a simulation on the pending block has the block's number or the next. */
  readonly pendingNumber: "same" | "next";
  /** Whether all usable nodes get a raw transaction (`writes: all`). */
  readonly sendsToAll: boolean;
  /** Raises `nonce` above the sender's consecutive transactions that a node accepted through any replica. */
  advanceNonce(sender: Address, nonce: bigint): Promise<bigint>;
  /** Calls the listener with each new view. */
  subscribe(listener: (change: PendingChange) => void): () => void;
  /** Records that a node accepted this raw transaction. Resolves when other replicas can read it, with undefined if it is not hex data. */
  recordSubmitted(raw: string): Promise<SubmittedTransaction | undefined>;
}

/** One call, with everything that a method may use. */
export interface MethodInput {
  readonly chain: MethodChain;
  readonly call: Call;
  readonly context: Context;
}

/**
 * How long a method's responses are cached (docs/architecture.md, invariant 1; table: docs/methods.md).
 * `block` and `state`: read at a block, final or recent. `final`: cached only if the block is final.
 * `fork`: `constant`, until the next fork that the response names.
 */
export type RetentionLabel =
  | "constant"
  | "byHash"
  | "byTransaction"
  | "block"
  | "state"
  | "logs"
  | "head"
  | "fork"
  | "final"
  | "computed"
  | "never";

/** The source of responses at `pending`: the view if there is one, or the node. `none`: the method has no block parameter. */
export type PendingBehaviour = "view" | "node" | "none";

/** What is computed from a block in full, and its receipts. */
export type BlockAnswer =
  | "block"
  | "transactionCount"
  | "uncleCount"
  | "transaction"
  | "transactionAt"
  | "receipt"
  | "receipts"
  | "logs";

/**
 * How an answer is proven (docs/answers.md, Proven answers only). `byBlock`: by the header of its block. `byProof`: by eth_getProof.
 * `byExecution`: by an execution here on proven values. The response has that proof, unless it is computed: the forms with a value.
 * `atDelivery`: each event is proven when it is sent.
 */
export type Prove =
  | "byBlock"
  | "byProof"
  | "byExecution"
  | "atDelivery"
  | "never"
  | { readonly byBlock: BlockAnswer }
  | { readonly byProof: StateField };

/** One entry of the method table. */
export interface Method {
  readonly name: string;
  readonly retention: RetentionLabel;
  readonly atPending: PendingBehaviour;
  /** A node may need long for it, or its response is large. It shares no HTTP request to a node with other calls. */
  readonly isSlow?: true;
  /** Default: `never`. */
  readonly prove?: Prove | undefined;
  handle(input: MethodInput): Awaitable<RpcResponse>;
}

/** Forwards a call unchanged. It is never cached or coalesced. `sendToAll`: see RpcRequest. */
export const forwarded = (
  { chain, call: { method, params, paramsText }, context }: MethodInput,
  sendToAll = false,
): Promise<RpcResponse> => {
  const request: RpcRequest = { method, params, paramsText, retention: "never", canonicalParams: "", write: true };
  return chain.nodes.request(sendToAll ? { ...request, sendToAll } : request, context);
};
