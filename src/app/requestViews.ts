import { Context, type ContextOptions, type InboundRequest } from "../core/context.ts";
import type { Heads } from "../core/heads.ts";
import { type HeadsBehind, MAX_CONFIRMATIONS } from "../heads/headsBehind.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import type { ClientViews } from "./chainSources.ts";
import type { Upstreams } from "./upstreams.ts";

export interface RequestViewsOptions {
  readonly heads: Pick<Upstreams["heads"], "current" | "next">;
  readonly views: Pick<ClientViews, "view">;
  readonly behind: Pick<HeadsBehind, "find" | "view">;
  /** Deadline of a request. */
  readonly timeoutMs: number;
  /** Header that bypasses the cache. */
  readonly bypassHeader: string | undefined;
}

const BYPASS: ContextOptions = { bypassCache: true };

/** A backfill of the newest blocks takes less. */
const BACKFILL_MS = 3_000;

const CONFIRMATIONS = "x-forebay-confirmations";

const invalidHeader = (message: string): RpcError =>
  new RpcError(CODES.INVALID_REQUEST, `Invalid request: ${message}`, { status: 400 });

/** Returns the confirmations that blocks need for this request: those of the key, or more. Throws RpcError (400). */
const confirmationsOf = ({ caller: { confirmations = 0 }, received: { headers } }: InboundRequest): number => {
  const header = headers[CONFIRMATIONS];
  if (header === undefined) {
    return confirmations;
  }
  const wanted = /^\d{1,2}$/.test(String(header)) ? Number(header) : Number.NaN;
  if (!(wanted <= MAX_CONFIRMATIONS)) {
    throw invalidHeader(`${CONFIRMATIONS} must be a number from 0 to ${MAX_CONFIRMATIONS}`);
  }
  return Math.max(wanted, confirmations);
};

/** The views that requests of one chain get, as their headers and their keys want them. */
export class RequestViews {
  readonly #options: RequestViewsOptions;

  constructor(options: RequestViewsOptions) {
    this.#options = options;
  }

  /** Takes the view of a request. Undefined before the first head. Throws RpcError for an invalid header, or without the wanted block. */
  contextOf(request: InboundRequest): Context | undefined {
    const { heads, views, behind, timeoutMs, bypassHeader } = this.#options;
    if (heads.current() === undefined) {
      return undefined;
    }
    const actual = views.view();
    const deadlineMs = performance.now() + timeoutMs;
    const isBypass = bypassHeader !== undefined && request.received.headers[bypassHeader] !== undefined;
    const confirmations = confirmationsOf(request);
    return confirmations === 0
      ? new Context(request, actual, deadlineMs, isBypass ? BYPASS : undefined)
      : new Context(request, behind.view(actual.heads, confirmations), deadlineMs, {
          ...{ bypassCache: isBypass, behind: { confirmations, actual } },
        });
  }

  /** Waits until the blocks that the client's confirmations need are read, as after a start. Undefined if they are. */
  untilKnown(request: InboundRequest): Promise<void> | undefined {
    const { heads, behind } = this.#options;
    const confirmations = confirmationsOf(request);
    const current = heads.current();
    return confirmations === 0 || current === undefined || behind.find(current, confirmations) !== undefined
      ? undefined
      : this.#backfilled(current, confirmations);
  }

  async #backfilled(current: Heads, confirmations: number): Promise<void> {
    const { heads, behind } = this.#options;
    const signal = AbortSignal.timeout(BACKFILL_MS);
    for (let known = current; behind.find(known, confirmations) === undefined && !signal.aborted; ) {
      // After the timeout, the request is refused.
      known = await heads.next(signal).then(
        (change) => change.heads,
        () => known,
      );
    }
  }
}
