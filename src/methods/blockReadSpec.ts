import type { RpcRequest, RpcResponse } from "../core/rpcSource.ts";
import type { PendingView } from "../core/view.ts";
import type { CallMethod } from "../state/calls/callRun.ts";
import type { StateField, StateKey } from "../state/stateKey.ts";
import type { StateMethod } from "../state/stateReads.ts";
import type { MethodInput, Prove } from "./method.ts";
import { type CanonicalJson, hexOf, type ParamSpec } from "./paramSpec.ts";

/** `block`: data of the block itself, which its hash commits to. `state`: the state after the block. */
type BlockReadKind = "block" | "state";

/** Describes a method that reads at a block. */
export interface BlockReadSpec {
  readonly name: string;
  /** One of them is `blockNumberOrTag`, `blockNumberOrTagOrHash` or `stateBlock`. */
  readonly params: readonly ParamSpec[];
  readonly kind: BlockReadKind;
  /** The equivalent method by block hash. Without it, `{blockHash}` replaces the number (EIP-1898). */
  readonly byHashMethod?: string;
  /** The method has no form by hash. The response is cached if it contains the block's hash. */
  readonly byNumberOnly?: true;
  readonly blockField?: RpcRequest["blockField"];
  /** At or below the head, `null` is an error, because the block exists. */
  readonly nullIsError?: true;
  /** `null` is a valid result at the node's pending block. */
  readonly isNullable?: true;
  /** Names the state value that the response contains. Without it, nodes answer. */
  readonly stateRead?: {
    readonly method: StateMethod;
    readonly keyOf: (values: readonly CanonicalJson[]) => StateKey;
  };
  /** The response holds for later blocks until a value that the call reads is written. */
  readonly cachedCall?: CallMethod;
  /** See `Method`. */
  readonly isSlow?: true;
  /** See `Method`. */
  readonly prove?: Prove;
  /** Answers from the view at `pending`. Without it, the node's pending block answers. */
  readonly pending?: (read: PendingRead) => Promise<RpcResponse>;
}

/** The input of a read at `pending` that the view can answer. */
export interface PendingRead {
  readonly input: MethodInput;
  readonly values: readonly CanonicalJson[];
  readonly pending: PendingView;
  /** Sends the same read at the view's base block. */
  atBase(): Promise<RpcResponse>;
}

/** Returns the state value that a method reads. Its first parameter is the address, and that of a slot the second. */
export const stateRead = (method: StateMethod, field: StateField): NonNullable<BlockReadSpec["stateRead"]> => ({
  method,
  keyOf: (values) => ({ field, address: hexOf(values[0]), slot: field === "slot" ? hexOf(values[1]) : undefined }),
});
