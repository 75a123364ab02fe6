import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { request } from "undici";

/** A server in front of a node. */
export interface Front {
  readonly url: string;
  /** Closes all connections, like a node that restarts. */
  disconnect(): void;
  close(): Promise<void>;
}

export interface FrontResponse {
  readonly status: number;
  readonly text: string;
}

/** Starts a server. `answer` maps the body of a request to its response; 502 if it rejects. */
export const startFront = async (answer: (body: string) => Promise<string | FrontResponse>): Promise<Front> => {
  const server = createServer(async (incoming, response) => {
    try {
      const answered = await answer(Buffer.concat(await incoming.toArray()).toString());
      const { status, text } = typeof answered === "string" ? { status: 200, text: answered } : answered;
      response.statusCode = status;
      // After writeHead, the response would have no length.
      response.setHeader("content-type", "application/json").end(text);
    } catch {
      response.writeHead(502).end();
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    disconnect: () => server.closeAllConnections(),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

/** Sends a body to a node. */
export const forwardTo = async (url: string, body: string): Promise<FrontResponse> => {
  const response = await request(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  return { status: response.statusCode, text: await response.body.text() };
};
