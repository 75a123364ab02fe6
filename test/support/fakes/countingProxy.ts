import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { request } from "undici";

export interface CountingProxy {
  readonly url: string;
  /** The node behind it; can be replaced. */
  target: string;
  /** Calls by method since the start; batch items count singly. */
  readonly calls: ReadonlyMap<string, number>;
  readonly total: number;
  close(): Promise<void>;
}

/** Forwards every request unchanged to a node, and counts its calls. */
export const createCountingProxy = async (firstTarget: string): Promise<CountingProxy> => {
  const calls = new Map<string, number>();
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) {
      chunks.push(chunk);
    }
    const body = Buffer.concat(chunks);
    const parsed: { readonly method: string } | readonly { readonly method: string }[] = JSON.parse(body.toString());
    for (const { method } of [parsed].flat()) {
      calls.set(method, (calls.get(method) ?? 0) + 1);
    }
    try {
      const answer = await request(proxy.target, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      response.writeHead(answer.statusCode, { "content-type": "application/json" });
      response.end(await answer.body.text());
    } catch {
      response.destroy();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const proxy: CountingProxy = {
    target: firstTarget,
    url: `http://127.0.0.1:${port}`,
    calls,
    get total() {
      return calls.values().reduce((sum, count) => sum + count, 0);
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return proxy;
};
