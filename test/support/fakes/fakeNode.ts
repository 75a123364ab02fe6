import type { IncomingHttpHeaders } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { createFakeChain, type FakeBlock, type FakeChain } from "./fakeChain.ts";
import {
  answerBody,
  callsOf,
  FakeError,
  type FrontRequest,
  type FrontResponse,
  isBatch,
  type NodeCall,
  startSocketFront,
} from "./front.ts";

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
  readonly requests: readonly { readonly headers: IncomingHttpHeaders; readonly path: string; readonly body: string }[];
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

const SAFE_DEPTH = 4;
const FINALIZED_DEPTH = 8;
const HALF_SENT = '{"jsonrpc":"2.0","id":1,"result":"0x1"}';

/** A JSON-RPC node on port 0 that answers from a generated chain, counts its calls, and has the configured faults. */
export const createFakeNode = async (options: FakeNodeOptions = {}): Promise<FakeNode> => {
  const chain = options.chain ?? createFakeChain();
  const faults: Faults = {};
  const calls = new Map<string, number>();
  const requests: { headers: IncomingHttpHeaders; path: string; body: string }[] = [];
  const waiting = new Map<string, (() => void)[]>();
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
    net_version: () => String(chain.chainId),
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

  const answer = ({ method, params }: NodeCall): unknown => {
    if (faults.error && (faults.methods === undefined || faults.methods.includes(method))) {
      throw new FakeError(faults.error.code, faults.error.message, faults.error.data);
    }
    const handler = options.handlers?.[method] ?? known[method];
    if (!handler) {
      throw new FakeError(-32_601, `the method ${method} does not exist`);
    }
    return handler(params);
  };

  const note = ({ method }: NodeCall): void => {
    calls.set(method, (calls.get(method) ?? 0) + 1);
    for (const resolve of waiting.get(method)?.splice(0) ?? []) {
      resolve();
    }
  };

  const watchEnd = async (isBalance: boolean, ended: Promise<boolean>): Promise<void> => {
    balancesInFlight += isBalance ? 1 : 0;
    mostBalances = Math.max(mostBalances, balancesInFlight);
    const isComplete = await ended;
    balancesInFlight -= isBalance ? 1 : 0;
    for (const resolve of isComplete ? [] : breaks.splice(0)) {
      resolve();
    }
  };

  const respond = async (body: string, { headers, path, ended }: FrontRequest): Promise<FrontResponse> => {
    requests.push({ headers, path, body });
    void watchEnd(body.includes('"eth_getBalance"'), ended);
    const list = callsOf(body);
    list.forEach(note);
    if (faults.delayMs !== undefined) {
      await sleep(faults.delayMs);
    }
    const isFaulty = faults.methods === undefined || list.some(({ method }) => faults.methods?.includes(method));
    if (isFaulty && faults.answer === "hang") {
      await new Promise<void>((resolve) => hanging.push(resolve));
    }
    if (isFaulty && typeof faults.answer === "number") {
      const retry = faults.retryAfter === undefined ? {} : { "retry-after": `${faults.retryAfter}` };
      const html = { "content-type": "text/html", ...retry };
      return { status: faults.answer, headers: html, text: faults.page ?? "<html>no</html>" };
    }
    if (isFaulty && faults.answer === "reset") {
      return { status: 200, text: "", breaks: "before" };
    }
    if (isFaulty && faults.answer === "half") {
      return { status: 200, text: HALF_SENT, breaks: "middle" };
    }
    if (isBatch(body) && faults.refusesBatches) {
      const error = { code: -32_005, message: "batch requests are not supported" };
      return { status: 200, text: JSON.stringify({ jsonrpc: "2.0", id: null, error }) };
    }
    return { status: 200, text: await answerBody(body, answer) };
  };

  const front = await startSocketFront(respond, note);
  const stop = chain.onBlocks((blocks) => {
    for (const { number } of blocks) {
      const json = chain.blocks[Number(number) - (faults.lag ?? 0)]?.json;
      if (json !== undefined) {
        front.push(json);
      }
    }
  });

  return {
    url: `${front.url}/`,
    wsUrl: `${front.wsUrl}/`,
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
    closeSockets: front.closeSockets,
    close: () => {
      stop();
      return front.close();
    },
  };
};
