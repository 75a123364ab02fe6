import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type WebSocket, WebSocketServer } from "ws";
import { createFakeChain, type FakeBlock, type FakeChain } from "./fakeChain.ts";

export interface FakeNodeOptions {
  /** Default: a new chain with ten blocks. */
  readonly chain?: FakeChain;
  /** Replaces or adds the results of methods. A handler may throw a FakeError. */
  readonly handlers?: Readonly<Record<string, (params: readonly unknown[]) => unknown>>;
}

/** Faults of the node. Each can be changed at any time. */
export interface Faults {
  /**
   * `hang` answers only after `release`. `reset` breaks the connection, and `half` breaks it in the middle of a body. A number
   * is an HTTP status with an HTML page.
   */
  answer?: "hang" | "reset" | "half" | number | undefined;
  /** Sent instead of the HTML page. */
  page?: string | undefined;
  /** Seconds, sent with every bad status. */
  retryAfter?: number | undefined;
  /** Answers every call with this error. */
  error?: { code: number; message: string; data?: unknown } | undefined;
  /** Blocks behind the chain's end. */
  lag?: number | undefined;
  /** The number of its newest block, as of a node that synchronises after a restart. */
  height?: number | undefined;
  refusesBlockHash?: boolean | undefined;
  refusesBatches?: boolean | undefined;
  refusesFinality?: boolean | undefined;
  delayMs?: number | undefined;
  /** Only calls of these methods are faulty (single calls; `lag`, `height` and the refusals concern all). */
  methods?: readonly string[] | undefined;
}

export interface FakeNode {
  readonly url: string;
  readonly wsUrl: string;
  readonly chain: FakeChain;
  readonly faults: Faults;
  /** Calls answered or refused by method; batch items count singly. */
  readonly calls: ReadonlyMap<string, number>;
  readonly requests: readonly {
    readonly headers: IncomingMessage["headers"];
    readonly path: string;
    readonly body: string;
  }[];
  count(...methods: string[]): number;
  /** The most reads of balances that were in flight at once since the last call. */
  takeMostBalances(): number;
  /** Resolves when the next request for the method arrives. */
  asked(method: string): Promise<void>;
  /** Resolves when a client aborts a request before its response. */
  broken(): Promise<void>;
  /** Answers the requests that hang. */
  release(): void;
  closeSockets(): void;
  close(): Promise<void>;
}

export class FakeError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

interface Request {
  readonly id: unknown;
  readonly method: string;
  readonly params?: readonly unknown[];
}

const SAFE_DEPTH = 4;
const FINALIZED_DEPTH = 8;

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
};

/** A JSON-RPC node on port 0 that answers from a generated chain, counts its calls, and has the configured faults. */
export const createFakeNode = async (options: FakeNodeOptions = {}): Promise<FakeNode> => {
  const chain = options.chain ?? createFakeChain();
  const faults: Faults = {};
  const calls = new Map<string, number>();
  const requests: { headers: IncomingMessage["headers"]; path: string; body: string }[] = [];
  const waiting = new Map<string, (() => void)[]>();
  const subscribers = new Set<WebSocket>();
  const breaks: (() => void)[] = [];
  const hanging: (() => void)[] = [];
  let balancesInFlight = 0;
  let mostBalances = 0;

  const height = (): number => Math.max(0, faults.height ?? chain.blocks.length - 1 - (faults.lag ?? 0));
  const visible = (number: number): FakeBlock | undefined => (number <= height() ? chain.blocks[number] : undefined);

  const byTag = (tag: unknown): FakeBlock | undefined => {
    if (faults.refusesFinality && (tag === "safe" || tag === "finalized")) {
      throw new FakeError(-39_001, `${tag} block not found`);
    }
    const depths: Record<string, number> = { latest: 0, pending: 0, safe: SAFE_DEPTH, finalized: FINALIZED_DEPTH };
    const depth = depths[String(tag)];
    return visible(depth === undefined ? (tag === "earliest" ? 0 : Number(tag)) : Math.max(0, height() - depth));
  };
  const byHash = (hash: unknown): FakeBlock | undefined => {
    const found = chain.blocks.find((block) => block.hash === hash);
    return found && visible(Number(found.number));
  };

  const stateBlock = (parameter: unknown): FakeBlock => {
    if (typeof parameter === "object" && parameter !== null) {
      if (faults.refusesBlockHash) {
        throw new FakeError(-32_602, "invalid argument 1: json: cannot unmarshal object into Go value of type string");
      }
      const block = byHash("blockHash" in parameter ? parameter.blockHash : undefined);
      if (!block) {
        throw new FakeError(-32_000, "header for hash not found");
      }
      return block;
    }
    const block = byTag(parameter ?? "latest");
    if (!block) {
      throw new FakeError(-32_000, "header not found");
    }
    return block;
  };

  const known: Record<string, (params: readonly unknown[]) => unknown> = {
    eth_chainId: () => `0x${chain.chainId.toString(16)}`,
    eth_blockNumber: () => `0x${height().toString(16)}`,
    eth_getBlockByNumber: ([tag]) => byTag(tag)?.json ?? null,
    eth_getBlockByHash: ([hash]) => byHash(hash)?.json ?? null,
    // Balance and storage contain the number of the block that was read.
    eth_getBalance: ([, block]) => `0x${stateBlock(block).number.toString(16)}`,
    eth_getStorageAt: ([, , block]) => stateBlock(block).hash,
    eth_sendRawTransaction: () => `0x${"ab".repeat(32)}`,
    eth_getTransactionReceipt: () => null,
    eth_getLogs: () => [],
  };

  const answer = ({ id, method, params = [] }: Request): unknown => {
    const isFaulty = faults.error && (faults.methods === undefined || faults.methods.includes(method));
    if (isFaulty) {
      return { jsonrpc: "2.0", id, error: faults.error };
    }
    const handler = options.handlers?.[method] ?? known[method];
    if (!handler) {
      return { jsonrpc: "2.0", id, error: { code: -32_601, message: `the method ${method} does not exist` } };
    }
    try {
      return { jsonrpc: "2.0", id, result: handler(params) };
    } catch (error) {
      const { code, message, data } = error instanceof FakeError ? error : new FakeError(-32_603, String(error));
      return { jsonrpc: "2.0", id, error: { code, message, ...(data !== undefined && { data }) } };
    }
  };

  const note = ({ method }: Request): void => {
    calls.set(method, (calls.get(method) ?? 0) + 1);
    for (const resolve of waiting.get(method)?.splice(0) ?? []) {
      resolve();
    }
  };

  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(request);
    requests.push({ headers: request.headers, path: request.url ?? "", body });
    const isBalance = body.includes('"eth_getBalance"');
    balancesInFlight += isBalance ? 1 : 0;
    mostBalances = Math.max(mostBalances, balancesInFlight);
    response.on("close", () => {
      balancesInFlight -= isBalance ? 1 : 0;
      for (const resolve of response.writableFinished ? [] : breaks.splice(0)) {
        resolve();
      }
    });
    const parsed: Request | Request[] = JSON.parse(body);
    const list = Array.isArray(parsed) ? parsed : [parsed];
    list.forEach(note);
    if (faults.delayMs !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, faults.delayMs));
    }
    const faulty = faults.methods === undefined || list.some(({ method }) => faults.methods?.includes(method));
    if (faulty && faults.answer === "hang") {
      await new Promise<void>((resolve) => hanging.push(resolve));
    }
    if (faulty && faults.answer === "reset") {
      request.socket.destroy();
      return;
    }
    if (faulty && typeof faults.answer === "number") {
      const retry = faults.retryAfter === undefined ? {} : { "retry-after": `${faults.retryAfter}` };
      response
        .writeHead(faults.answer, { "content-type": "text/html", ...retry })
        .end(faults.page ?? "<html>no</html>");
      return;
    }
    if (faulty && faults.answer === "half") {
      response.writeHead(200, { "content-type": "application/json", "content-length": 100 });
      response.write('{"jsonrpc":"2.0","id":1,"resu', () => request.socket.destroy());
      return;
    }
    const refused = { jsonrpc: "2.0", id: null, error: { code: -32_005, message: "batch requests are not supported" } };
    const result = Array.isArray(parsed) ? (faults.refusesBatches ? refused : list.map(answer)) : answer(parsed);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(result));
  };

  const server = createServer((request, response) => void respond(request, response));
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket) => {
    socket.on("message", (data) => {
      const request: Request = JSON.parse(data.toString());
      note(request);
      subscribers.add(socket);
      socket.send(JSON.stringify({ jsonrpc: "2.0", id: request.id, result: "0x1" }));
    });
    socket.on("close", () => subscribers.delete(socket));
  });
  const stop = chain.onBlocks((blocks) => {
    for (const { number } of blocks) {
      const json = chain.blocks[Number(number) - (faults.lag ?? 0)]?.json;
      if (json === undefined) {
        continue;
      }
      const { transactions, uncles, size, ...header } = json;
      const params = { subscription: "0x1", result: header };
      for (const socket of subscribers) {
        socket.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
      }
    }
  });

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}/`,
    wsUrl: `ws://127.0.0.1:${port}/`,
    chain,
    faults,
    calls,
    requests,
    count: (...methods) =>
      methods.length === 0
        ? [...calls.values()].reduce((sum, count) => sum + count, 0)
        : methods.reduce((sum, method) => sum + (calls.get(method) ?? 0), 0),
    takeMostBalances: () => {
      const most = mostBalances;
      mostBalances = balancesInFlight;
      return most;
    },
    asked: (method) =>
      new Promise((resolve) => {
        waiting.set(method, [...(waiting.get(method) ?? []), resolve]);
      }),
    broken: () =>
      new Promise((resolve) => {
        breaks.push(resolve);
      }),
    release: () => {
      for (const resolve of hanging.splice(0)) {
        resolve();
      }
    },
    closeSockets: () => {
      for (const socket of sockets.clients) {
        socket.terminate();
      }
    },
    close: async () => {
      stop();
      for (const socket of sockets.clients) {
        socket.terminate();
      }
      sockets.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
