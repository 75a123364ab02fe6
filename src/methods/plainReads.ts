import type { Lifetime, Question } from "../core/source.ts";
import { createCall } from "../jsonrpc/call.ts";
import type { Method } from "./chain.ts";
import { inTrueView } from "./inTrueView.ts";
import type { Reader } from "./reader.ts";
import { readParams } from "./readParams.ts";

export interface PlainRead {
  readonly name: string;
  readonly params: readonly Reader[];
  readonly lifetime: Extract<Lifetime, "constant" | "byHash" | "head" | "byTransaction" | "never">;
  readonly tells?: Question["tells"];
}

/** Creates a method without a block number. Its retention class depends only on its params, or on the head. */
export const plainRead = ({ name, params, lifetime, tells }: PlainRead): Method => ({
  name,
  kept: lifetime,
  atPending: "none",
  answer: async ({ chain, call, context }) => {
    const values = readParams(call.params, params);
    const subject = JSON.stringify([name, values]);
    const question = { ...createCall(name, values), lifetime, subject, ...(tells && { tells }) };
    return inTrueView(chain, context, (at) => chain.reads.request(question, at));
  },
});
