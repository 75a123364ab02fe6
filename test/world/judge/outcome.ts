import { FakeError } from "../../support/fakes/front.ts";
import type { ChainCall } from "../../support/servers/sealedChain.ts";
import { answerCall } from "../chain/nodeAnswers.ts";
import type { TruthBlock } from "../chain/truthBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";

/** A response of a proxy, with the times of its request and of its arrival. */
export interface JudgedAnswer {
  readonly call: ChainCall;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string } | undefined;
  readonly startMs: number;
  readonly endMs: number;
}

type Outcome = { readonly result: unknown } | { readonly missing: true };

/** Returns what an honest node with this head answers: a result, or an error. */
export const outcomeOf = (chain: TruthChain, head: TruthBlock, { method, params }: ChainCall): Outcome => {
  try {
    return { result: answerCall({ chain, head }, method, params) };
  } catch (error) {
    if (error instanceof FakeError) {
      return { missing: true };
    }
    throw error;
  }
};

/** Returns the number of the head that an answer shows; undefined if it shows none. */
export const headOf = ({ call, result }: JudgedAnswer): number | undefined => {
  if (result === undefined || result === null) {
    return undefined;
  }
  if (call.method === "eth_blockNumber") {
    return Number(result);
  }
  return call.method === "eth_getBlockByNumber" && call.params[0] === "latest"
    ? Number(Reflect.get(Object(result), "number"))
    : undefined;
};
