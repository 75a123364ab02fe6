import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";

/** A method that takes its time. */
export const SLOW_METHOD = "slow_read";

export interface SlowFront {
  readonly url: string;
  /** Resolves when the slow method is asked next. */
  asked(): Promise<void>;
  close(): Promise<void>;
}

/** In front of a node: hands everything on, but for one method that it answers itself, late. */
export const createSlowFront = async (nodeUrl: string, delayMs: number): Promise<SlowFront> => {
  let waiting: (() => void)[] = [];
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    response.setHeader("content-type", "application/json");
    if (!body.includes(`"${SLOW_METHOD}"`)) {
      const answer = await request(nodeUrl, { method: "POST", headers: { "content-type": "application/json" }, body });
      response.end(await answer.body.text());
      return;
    }
    for (const resolve of waiting) resolve();
    waiting = [];
    await sleep(delayMs);
    response.end('{"jsonrpc":"2.0","id":1,"result":"done"}');
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    asked: () => new Promise((resolve) => waiting.push(resolve)),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
