import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import { type Front, startFront } from "./front.ts";

/** The slow method. */
export const SLOW_METHOD = "slow_read";

export interface SlowFront extends Front {
  /** Resolves at the next call of the slow method. */
  asked(): Promise<void>;
}

/** Creates a server in front of a node. It forwards all methods except one, which it answers late. */
export const createSlowFront = async (nodeUrl: string, delayMs: number): Promise<SlowFront> => {
  let waiting: (() => void)[] = [];
  const front = await startFront(async (body) => {
    if (!body.includes(`"${SLOW_METHOD}"`)) {
      const answer = await request(nodeUrl, { method: "POST", headers: { "content-type": "application/json" }, body });
      return answer.body.text();
    }
    for (const resolve of waiting) {
      resolve();
    }
    waiting = [];
    await sleep(delayMs);
    return '{"jsonrpc":"2.0","id":1,"result":"done"}';
  });
  return { ...front, asked: () => new Promise((resolve) => waiting.push(resolve)) };
};
