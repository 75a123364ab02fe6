import type { HeadChange, Heads } from "../core/heads.ts";
import type { RequestContext, RpcRequest, RpcSource } from "../core/rpcSource.ts";
import type { Log } from "../telemetry/telemetry.ts";

/** Nobody who asked for the newest block longer ago is still waiting for the next one. */
const ASKED_MS = 30_000;

export interface HeadPrefetchOptions {
  /** What most ask of a head. */
  readonly requestsOf: (heads: Heads) => {
    readonly receipts: RpcRequest;
    readonly block: RpcRequest;
    readonly fullBlock: RpcRequest;
  };
  readonly contextOf: (heads: Heads) => RequestContext;
  readonly log: Log;
}

export interface HeadPrefetch extends RpcSource {
  /** To be called with every change of heads. */
  onChange(change: HeadChange): void;
}

/**
 * Fetches a new head's receipts and block, the latter in the forms that were asked for, once, before the many who wait for it
 * ask. `source` is the cached one: what it answers is kept, and who asks meanwhile shares the request.
 */
export const prefetched = (source: RpcSource, { requestsOf, contextOf, log }: HeadPrefetchOptions): HeadPrefetch => {
  let askedMs = Number.NEGATIVE_INFINITY;
  /** When each question of the newest block was asked, by its subject, which leaves the block out. */
  const paramsOfTransactions = new Map<string, number>();

  const note = ({ block, canonicalParams, blockField }: RpcRequest, { view }: RequestContext): void => {
    if (block === undefined || block.number !== view.heads.latest.number) return;
    askedMs = performance.now();
    if (blockField === "hash") paramsOfTransactions.set(canonicalParams, askedMs);
  };
  const wasAsked = ({ canonicalParams }: RpcRequest): boolean =>
    performance.now() - (paramsOfTransactions.get(canonicalParams) ?? Number.NEGATIVE_INFINITY) <= ASKED_MS;

  return {
    request: (question, context) => {
      note(question, context);
      return source.request(question, context);
    },
    onChange: ({ heads, to }) => {
      if (to.length === 0 || performance.now() - askedMs > ASKED_MS) return;
      const { receipts, block, fullBlock } = requestsOf(heads);
      const forms = [block, fullBlock].filter(wasAsked);
      const context = contextOf(heads);
      for (const question of [receipts, ...(forms.length > 0 ? forms : [block])]) {
        source.request(question, context).catch((err: unknown) => {
          // Whoever asks next gets the error, or a better answer.
          log.debug({ err, method: question.method }, "warm-up failed");
        });
      }
    },
  };
};
