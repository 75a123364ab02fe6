import type { Reply } from "./call.ts";
import { type DispatchResult, noContent } from "./dispatchResult.ts";
import type { Item } from "./envelope.ts";
import { type Chunk, formatErrorResponse, formatResult, isStream } from "./formatResponse.ts";
import { discardStream, tooLarge } from "./responseStream.ts";
import { CODES, RpcError } from "./rpcError.ts";

/** An item that has been run: a reply with the body to write for it, or an error. */
export interface CompletedCall<R extends Reply> {
  readonly id: Uint8Array | undefined;
  readonly reply?: R | undefined;
  readonly body?: Chunk | undefined;
  readonly error?: RpcError | undefined;
}

export interface BatchLimits {
  readonly concurrency: number;
  readonly maxResponseBytes: number;
}

const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");

/** The response to one item; nothing for a notification. */
export const formatCompleted = <R extends Reply>({ id, body, error }: CompletedCall<R>): readonly Chunk[] => {
  if (id === undefined) return [];
  if (body !== undefined && error === undefined) return formatResult(id, body);
  return formatErrorResponse(id, error ?? new RpcError(CODES.INTERNAL, "Internal error"));
};

const abandonBody = async <R extends Reply>({ body }: CompletedCall<R>): Promise<void> => {
  if (body !== undefined && isStream(body)) await discardStream(body);
};

/**
 * Runs the items of a batch side by side and answers them in request order always (ethers 5 matches by position).
 * An item that streams keeps its place among the running ones until it is written, so that open streams stay few.
 */
export const runBatch = async <R extends Reply>(
  items: readonly Item[],
  run: (item: Item) => Promise<CompletedCall<R>>,
  { concurrency, maxResponseBytes }: BatchLimits,
): Promise<DispatchResult<R>> => {
  const slots = items.map(() => Promise.withResolvers<CompletedCall<R>>());
  const streamed = Promise.withResolvers<void>();
  const replies: R[] = [];
  const errors: RpcError[] = [];
  let bytes = 0;
  let next = 0;
  let running = 0;
  let stopped = false;

  const streams = ({ id, body }: CompletedCall<R>): boolean => id !== undefined && body !== undefined && isStream(body);

  /** What no longer fits into the response becomes an error of its own. */
  const fitting = (answered: CompletedCall<R>): CompletedCall<R> => {
    const { id, body } = answered;
    if (id === undefined || body === undefined || isStream(body)) return answered;
    if (bytes + body.length > maxResponseBytes) return { id, error: tooLarge(maxResponseBytes) };
    bytes += body.length;
    return answered;
  };

  const runOne = async (item: Item, slot: PromiseWithResolvers<CompletedCall<R>>): Promise<void> => {
    const answered = fitting(await run(item));
    if (answered.reply !== undefined) replies.push(answered.reply);
    else if (answered.id !== undefined && answered.error !== undefined) errors.push(answered.error);
    slot.resolve(answered);
    if (streams(answered)) streamed.resolve();
    else release();
  };
  const start = (): void => {
    while (running < concurrency && !stopped) {
      const item = items[next];
      const slot = slots[next];
      if (item === undefined || slot === undefined) return;
      next++;
      running++;
      runOne(item, slot).catch(slot.reject);
    }
  };
  const release = (): void => {
    running--;
    start();
  };

  const stream = async function* (): AsyncGenerator<Uint8Array> {
    let separator = OPEN;
    let taken = 0;
    try {
      for (const { promise } of slots) {
        const answered = await promise;
        taken++;
        const chunks = formatCompleted(answered);
        if (chunks.length === 0) continue;
        yield separator;
        separator = COMMA;
        for (const chunk of chunks) {
          if (!isStream(chunk)) yield chunk;
          else {
            for await (const part of chunk) {
              bytes += part.length;
              if (bytes > maxResponseBytes) throw tooLarge(maxResponseBytes);
              yield part;
            }
          }
        }
        if (streams(answered)) release();
      }
      yield CLOSE;
    } finally {
      stopped = true;
      // Where the caller has left, what was begun for it and not read ends here.
      for (const { promise } of slots.slice(taken, next)) promise.then(abandonBody).catch(() => {});
    }
  };

  start();
  const finished = Promise.all(slots.map(({ promise }) => promise));
  const answers = await Promise.race([finished, streamed.promise]);
  if (answers === undefined) {
    // The stream hears of a failure by the slot itself.
    finished.catch(() => {});
    return { status: 200, chunks: [stream()], replies: [...replies], errors: [...errors] };
  }
  const chunks = answers.map(formatCompleted).filter((parts) => parts.length > 0);
  if (chunks.length === 0) return noContent;
  return {
    status: 200,
    chunks: [...chunks.flatMap((parts, index) => [index === 0 ? OPEN : COMMA, ...parts]), CLOSE],
    replies,
    errors,
  };
};
