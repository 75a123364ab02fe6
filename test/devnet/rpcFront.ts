import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listen } from "../support/servers/ports.ts";
import { Refused } from "./mempool.ts";

/** Answers one method. The result `undefined` forwards the call. */
export type FrontMethod = (params: readonly unknown[]) => Promise<unknown>;

export interface RpcFront {
  readonly url: string;
  close(): Promise<void>;
}

interface FrontCall {
  readonly id?: unknown;
  readonly method: string;
  readonly params?: readonly unknown[];
}

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
};

/** The server for clients. It forwards bodies unchanged, and answers some methods itself. */
export const createRpcFront = async (
  methods: ReadonlyMap<string, FrontMethod>,
  forward: (body: string) => Promise<string>,
): Promise<RpcFront> => {
  const answer = async (call: FrontCall): Promise<string> => {
    const method = methods.get(call.method);
    const id = call.id ?? null;
    try {
      const result = await method?.(call.params ?? []);
      if (result === undefined) {
        return await forward(JSON.stringify(call));
      }
      return JSON.stringify({ jsonrpc: "2.0", id, result });
    } catch (error) {
      if (!(error instanceof Refused)) {
        throw error;
      }
      return JSON.stringify({ jsonrpc: "2.0", id, error: { code: error.code, message: error.message } });
    }
  };

  const respond = async (body: string): Promise<string> => {
    let parsed: unknown;
    try {
      parsed = JSON.parse(body);
    } catch {
      return forward(body);
    }
    const isOurs = (call: unknown): call is FrontCall =>
      typeof call === "object" && call !== null && "method" in call && methods.has(String(call.method));
    if (!Array.isArray(parsed)) {
      return isOurs(parsed) ? answer(parsed) : forward(body);
    }
    if (!parsed.some(isOurs)) {
      return forward(body);
    }
    const answers = await Promise.all(
      parsed.map((call) => (isOurs(call) ? answer(call) : forward(JSON.stringify(call)))),
    );
    return `[${answers.filter((text) => text.length > 0).join(",")}]`;
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const text = await respond(await readBody(request));
      response.writeHead(200, { "content-type": "application/json" }).end(text);
    } catch (error) {
      // The error of a proxy in front of a node that is down.
      response.writeHead(502, { "content-type": "text/plain" }).end(String(error));
    }
  };

  const server = createServer((request, response) => void serve(request, response));
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
