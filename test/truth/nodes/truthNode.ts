import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { FakeError } from "../../support/fakes/fakeNode.ts";
import type { FrontResponse } from "../../support/fakes/front.ts";
import { type Lie, LieTeller } from "../../support/fakes/lyingNode.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { answerCall, type NodeView } from "../chain/nodeAnswers.ts";
import { ancestorAt, type TruthBlock } from "../chain/truthBlock.ts";
import type { TruthChain } from "../chain/truthChain.ts";
import { NodeFilters } from "./nodeFilters.ts";

/** How a node differs from an honest one. */
export interface NodeFault {
  /** Returns how many blocks the view of the next request is behind the head. */
  readonly lag?: () => number;
  /** The time by which it learns later of each head. */
  readonly lateMs?: number;
  /** The chain that it follows instead. */
  readonly chain?: TruthChain;
  /** Wrong responses, applied in order. */
  readonly lies?: readonly Lie[];
  /** `hang`: it accepts a request and never answers. `cut`: it closes the connection in the middle of the body. */
  readonly body?: "hang" | "cut";
}

/** A node that follows the chain, with a fault that can change at any time. */
export interface TruthNode {
  readonly url: string;
  /** Without a fault, it is honest. */
  fault: NodeFault | undefined;
  /** Time until a response is sent. */
  delayMs: number;
  /** Calls by method. Items of a batch count singly. */
  readonly calls: ReadonlyMap<string, number>;
}

interface Call {
  readonly id: unknown;
  readonly method: string;
  readonly params?: readonly unknown[];
}

/** Returns the head that a chain had some time ago. */
const headBefore = (chain: TruthChain, ms: number): TruthBlock => {
  const atMs = performance.now() - ms;
  return (ms === 0 ? undefined : chain.headsBetween(atMs, atMs)[0]) ?? chain.head;
};

/** Starts a node. It ends with the test. */
export const startTruthNode = async (t: Lifespan, chain: TruthChain): Promise<TruthNode> => {
  const calls = new Map<string, number>();
  const filters = new NodeFilters();

  const viewOf = (fault: NodeFault | undefined): NodeView => {
    const followed = fault?.chain ?? chain;
    const head = headBefore(followed, fault?.lateMs ?? 0);
    return { chain: followed, head: ancestorAt(head, Math.max(0, head.number - (fault?.lag?.() ?? 0))) ?? head };
  };
  const answer = (view: NodeView, { id, method, params = [] }: Call): object => {
    try {
      const result = filters.answer(view, method, params) ?? answerCall(view, method, params);
      return { jsonrpc: "2.0", id, result };
    } catch (error) {
      const { code, message } = error instanceof FakeError ? error : new FakeError(-32_603, String(error));
      return { jsonrpc: "2.0", id, error: { code, message } };
    }
  };
  const teller = new LieTeller(async (body): Promise<FrontResponse> => {
    const parsed: Call | Call[] = JSON.parse(body);
    const view = viewOf(node.fault);
    const responses = Array.isArray(parsed) ? parsed.map((call) => answer(view, call)) : answer(view, parsed);
    return { status: 200, text: JSON.stringify(responses) };
  });

  const respond = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) {
      chunks.push(chunk);
    }
    const body = Buffer.concat(chunks).toString();
    for (const { method } of [JSON.parse(body)].flat() as Call[]) {
      calls.set(method, (calls.get(method) ?? 0) + 1);
    }
    if (node.delayMs > 0) {
      await sleep(node.delayMs);
    }
    const { fault } = node;
    if (fault?.body === "hang") {
      return;
    }
    const { status, text } = await teller.answer(body, fault?.lies ?? []);
    const type = text.startsWith("<") ? "text/html" : "application/json";
    response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) });
    if (fault?.body === "cut") {
      response.write(text.slice(0, text.length / 2), () => incoming.socket.destroy());
      return;
    }
    response.end(text);
  };
  const server = createServer((incoming, response) => {
    respond(incoming, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const node: TruthNode = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fault: undefined,
    delayMs: 0,
    calls,
  };
  return node;
};
