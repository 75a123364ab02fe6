import type { Answer, CallContext, Lifetime, Question } from "../chain/source.ts";
import { createCall } from "../jsonrpc/call.ts";
import type { Chain, Method } from "./chain.ts";
import type { Reader } from "./reader.ts";
import { readParams } from "./readParams.ts";

/**
 * A node may already tell of a block above the head served here: the heads follow before the caller hears of it, so that what he
 * asks next at `latest` is not older than what he was told.
 */
const withHead = async (chain: Chain, { view }: CallContext, answer: Answer): Promise<Answer> => {
  if (answer.block !== undefined && answer.block.number > view.heads.latest.number) await chain.heads.refresh();
  return answer;
};

export interface PlainRead {
  readonly name: string;
  readonly params: readonly Reader[];
  readonly lifetime: Extract<Lifetime, "constant" | "byHash" | "head" | "byTransaction" | "never">;
  readonly tells?: Question["tells"];
}

/** A read that names no block by number: its parameters alone, or the head, say how long the answer is true. */
export const plainRead = ({ name, params, lifetime, tells }: PlainRead): Method => ({
  name,
  answer: async ({ chain, call, context }) => {
    const values = readParams(call.params, params);
    const subject = JSON.stringify([name, values]);
    const question = { ...createCall(name, values), lifetime, subject, ...(tells && { tells }) };
    return withHead(chain, context, await chain.reads.request(question, context));
  },
});
