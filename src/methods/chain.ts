import type { Heads } from "../chain/heads.ts";
import type { Hash } from "../chain/hex.ts";
import type { LogFilter, LogFilterLimits } from "../chain/logFilter.ts";
import type { BlockRange } from "../chain/logRange.ts";
import type { Answer, CallContext, Question, Source } from "../chain/source.ts";
import type { Call } from "../jsonrpc/call.ts";

/** What the methods of one chain are made of; `main` hands it over. */
export interface Chain {
  /** Cache in front of shared requests in front of the nodes. */
  readonly reads: Source;
  /** The nodes alone: writes, and methods outside the table. */
  readonly nodes: Source;
  readonly heads: {
    /** Asks the nodes for their head now; shared, at most 500 ms. */
    refresh(): Promise<Heads>;
  };
  readonly logs: {
    request(
      filter: LogFilter,
      blocks: BlockRange | { readonly blockHash: Hash },
      context: CallContext,
    ): Promise<Answer>;
  };
  readonly logLimits: LogFilterLimits & { readonly maxBlocks: number | undefined };
  /** A node accepted this raw transaction through here. */
  accepted(raw: string): void;
}

/** One call on its way: everything that a method may use. */
export interface Asked {
  readonly chain: Chain;
  readonly call: Call;
  readonly context: CallContext;
}

/** One entry of the table. */
export interface Method {
  readonly name: string;
  answer(asked: Asked): Promise<Answer>;
}

/** Sent on as it came: never kept, never shared, never sent twice. */
export const forwarded = ({ chain, call: { method, params, paramsText }, context }: Asked): Promise<Answer> => {
  const question: Question = { method, params, paramsText, lifetime: "never", subject: "", write: true };
  return chain.nodes.request(question, context);
};
