import type { ChainCall } from "../servers/sealedChain.ts";
import { resultText, rpc } from "./rpc.ts";

/** The response to one call. */
export interface Asked {
  readonly call: ChainCall;
  readonly httpStatus: number;
  /** The text of `result`; undefined for an error. */
  readonly result: string | undefined;
  readonly text: string;
  readonly cacheStatus: string;
  readonly tookMs: number;
}

const AT_ONCE = 16;

export const ask = async (url: string, call: ChainCall): Promise<Asked> => {
  const startMs = performance.now();
  const { status, text, headers, body } = await rpc(url, call.method, call.params);
  return {
    call,
    httpStatus: status,
    text,
    result: body.result === undefined ? undefined : resultText(text),
    cacheStatus: headers.get("cache-status") ?? "",
    tookMs: performance.now() - startMs,
  };
};

/** Sends each call once, with limited concurrency. Returns the responses in the order of the calls. */
export const askAll = async (url: string, calls: readonly ChainCall[]): Promise<Asked[]> => {
  const waiting = calls.entries();
  const answers: Asked[] = [];
  const worker = async () => {
    for (const [index, call] of waiting) {
      answers[index] = await ask(url, call);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return answers;
};

export const isHit = ({ cacheStatus }: Asked, layer = ""): boolean =>
  cacheStatus.startsWith("forebay; hit") && cacheStatus.includes(layer);
