import { once } from "node:events";
import { createServer } from "node:http";
import type { Devnet } from "../devnet/devnet.ts";

/** A node that learns of sealed blocks later than they were sealed. */
export interface HeldNode {
  readonly url: string;
  close(): Promise<void>;
}

/** Stands before the devnet's node and tells `latest` as it was `delayMs` ago; all else goes through. */
export const createHeldNode = async (devnet: Devnet, delayMs: number): Promise<HeldNode> => {
  let told = BigInt(String(await devnet.rpc("eth_blockNumber")));
  const timers = new Set<NodeJS.Timeout>();
  devnet.events.on("sealed", ({ number }) => {
    const timer = setTimeout(() => {
      timers.delete(timer);
      told = number;
    }, delayMs);
    timers.add(timer);
  });
  const hold = (call: { method: string; params?: unknown[] }) => {
    const params = call.params?.map((param) => (param === "latest" ? `0x${told.toString(16)}` : param));
    return { ...call, ...(params && { params }) };
  };
  const forward = async (body: string): Promise<string> => {
    const calls: unknown = JSON.parse(body);
    const held = Array.isArray(calls) ? calls.map(hold) : hold(calls as { method: string });
    const headers = { "content-type": "application/json" };
    const response = await fetch(devnet.url, { method: "POST", headers, body: JSON.stringify(held) });
    return response.text();
  };
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      forward(body).then(
        (text) => response.setHeader("content-type", "application/json").end(text),
        () => response.writeHead(502).end(),
      );
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: async () => {
      for (const timer of timers) clearTimeout(timer);
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
};
