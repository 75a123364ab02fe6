import type { CallScope } from "../core/context.ts";
import type { Node, NodeError, UnverifiedError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { Call } from "../jsonrpc/call.ts";
import type { IdentityFault } from "./identityGate.ts";
import type { AnnouncedBlock } from "./observedHealth.ts";

export interface CallOptions {
  /** The caller rejects a result that is not one JSON value, so that a large one need not be scanned. */
  readonly isVerified?: boolean;
  /** The call is a read that may share an HTTP request with others, if its method may. */
  readonly isShared?: boolean;
}

/** The facts that the selection between nodes uses. */
export interface NodeHealth {
  readonly name: string;
  readonly origin: string;
  readonly available: boolean;
  /** The tier of the node, 0 first. */
  readonly priority: number;
  /** A further call would wait, for one of the calls in flight or for the budget of calls. */
  readonly isFull: boolean;
  /** The node is not available only because it failed too often, or hangs. */
  readonly isFailing: boolean;
  /** Why the node gets no requests; undefined for a node in use. It has no words of the node. */
  readonly unusedReason: string | undefined;
  /** The node was out because it rejected requests. One read decides whether it is used again. */
  readonly needsTrial: boolean;
  readonly head: bigint | undefined;
  /** Hash of the block at `head`. */
  readonly headHash: Hash | undefined;
  /** Returns the hash of a recent block of the node's chain, if it announced the block or its child. */
  hashAt(number: bigint): Hash | undefined;
  readonly oldest: bigint;
  /** Moving average of the duration of good responses. */
  readonly latencyMs: number;
  /** Moving average of the share of faults, 0 to 1. */
  readonly errorShare: number;
  readonly inFlight: number;
}

/** One configured node: one URL, which may be a load balancer with several machines. */
export interface UpstreamNode extends Node, NodeHealth {
  /** Host and port, for log lines. */
  readonly host: string;
  readonly requestsPerSecond: number | undefined;
  /** The highest head that the node reported within 10 s: one of its machines has that block, even if `head` is lower. */
  readonly announced: bigint | undefined;
  /** True if the node's chain id and genesis block are the chain's. Until then only `probe` sends requests. */
  identified: boolean;
  /** The reason why the node is not identified, from the last check. */
  fault: IdentityFault | undefined;
  /** True for some time after a wrong response, while the node hangs, and while it rejects requests. */
  readonly suspended: boolean;
  /** True if only a suspension can prevent requests to the node. */
  readonly reachable: boolean;
  /** The operator has taken the node out of use. Only its heads are followed, and its chain is checked. */
  readonly isCordoned: boolean;
  setCordoned(isCordoned: boolean): void;
  /** Another node responded first, this long after the request to this node. */
  recordLostRace(elapsedMs: number): void;
  recordWrongAnswer(error: UnverifiedError): void;
  /** The head of the node fell behind those of the others. If the node is busy, it gets fewer requests at once. */
  recordLag(): void;
  /** Another node answered the read of this method that this node returned the error to. */
  recordDifference(error: NodeError, method: string): void;
  /**
   * Sends one call unchanged and without retries. Returns the UTF-8 JSON text of its result. Rejects with NodeError.
   */
  send(call: Call, scope: CallScope, options?: CallOptions): Promise<Uint8Array>;
  /** Sends several calls, also to a node that is suspended or not identified. Used to check the node's chain. */
  probe(calls: readonly Call[], scope: CallScope): Promise<(RpcResponse | NodeError)[]>;
  /** Requires a check of the node's identity before the next request: it may have been restarted with another chain. */
  requireIdentityCheck(): void;
  /** Verifies the node's identity if a check is required. Rejects with NodeError if the node must not be used. */
  confirm(): Promise<void>;
  /** Records the newest block that the node reported. */
  announce(head: AnnouncedBlock): void;
  close(): Promise<void>;
}
