import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import { NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { type Awaitable, type Call, createCall, whenKnown } from "../jsonrpc/call.ts";
import type { MethodChain, Prove } from "./method.ts";
import {
  NotProvenError,
  type NotProvenReason,
  type ProvenCall,
  provenError,
  requireProof,
  requireProvable,
} from "./proofRules.ts";
import { answerOf } from "./provenAnswers.ts";

/** Runs a call as for any client. */
type Run = (call: Call, context: Context) => Awaitable<RpcResponse>;

/** What no header can prove, and is no answer about the chain: its id, writes with the wait for a receipt, ends of subscriptions. */
const EXEMPT = /^(?:eth_chainId$|eth_unsubscribe$|net_version$|eth_send|web3_)/;

/** Whether another block is served at that number, or none yet. Nothing is known of a number below the block ring. */
const isOutside = ({ number, hash }: BlockId, { latest, at }: Heads): boolean =>
  number > latest.number || (at(number)?.hash ?? hash) !== hash;

/** Proves calls of one chain in an agreed head. */
class Prover {
  readonly #chain: MethodChain;
  readonly #run: Run;

  constructor(chain: MethodChain, run: Run) {
    this.#chain = chain;
    this.#run = run;
  }

  /**
   * Returns a proven answer, or throws. A read that refreshes the heads is answered of newer ones than the call began with. So the
   * call is proven in these, once.
   */
  async prove(call: Call, prove: Prove, context: Context): Promise<RpcResponse> {
    const { heads } = context.view;
    requireProvable(call, prove, heads);
    if (prove === "atDelivery") {
      return this.#run(call, context);
    }
    let isNewer = false;
    try {
      return await this.#proveIn(heads, { call, prove, context }, () => {
        isNewer = true;
      });
    } catch (error) {
      if (!(error instanceof NotProvenError)) {
        throw error;
      }
      const reached = await this.#reachHeaders(error, context);
      const next = reached ?? (isNewer ? await this.#chain.heads.refresh(context) : heads);
      if (reached === undefined && next.latest.hash === heads.latest.hash) {
        throw error;
      }
      requireProvable(call, prove, next);
      return this.#proveIn(next, { call, prove, context }, () => undefined);
    }
  }

  /** `onOutside` is called if a read returns a block that is not in the heads. */
  async #proveIn(
    heads: Heads,
    { call, prove, context }: { readonly call: Call; readonly prove: Prove; readonly context: Context },
    onOutside: () => void,
  ): Promise<RpcResponse> {
    const sealed = context.with({ view: { heads } });
    const read: ProvenCall["read"] = (method, params) =>
      whenKnown(this.#run(createCall(method, params), sealed), (response) => {
        if (response.block !== undefined && isOutside(response.block, heads)) {
          onOutside();
        }
        return response;
      });
    const proven = { chain: this.#chain, call, context: sealed, read };
    try {
      return requireProof(await answerOf(proven, prove), proven);
    } catch (error) {
      throw error instanceof NodeError ? provenError(error) : error;
    }
  }

  /** Reads the newest headers, if the proof may have lacked one of them, as after a start. Undefined if they are known. */
  async #reachHeaders({ reason }: NotProvenError, context: Context): Promise<Heads | undefined> {
    return reason === "noProof"
      ? (await this.#chain.heads.reach({ from: 0n, to: context.view.heads.latest.number }, context))?.heads
      : undefined;
  }
}

/**
 * Creates the function that returns only answers that are proven on an agreed head, and throws an error with the reason instead of any
 * other. `latest` is the newest agreed block.
 */
export const createProver = (chain: MethodChain, run: Run, onNotProven: (reason: NotProvenReason) => void) => {
  const prover = new Prover(chain, run);
  return (call: Call, prove: Prove, context: Context): Awaitable<RpcResponse> =>
    EXEMPT.test(call.method)
      ? run(call, context)
      : prover.prove(call, prove, context).catch((error: unknown) => {
          if (error instanceof NotProvenError) {
            onNotProven(error.reason);
          }
          throw error;
        });
};
