import { startFront } from "../support/fakes/front.ts";
import type { VectorBlock } from "./vectorChain.ts";
import type { Request, Vector } from "./vectorFolder.ts";

/** A node that answers from the vectors, whichever way it is asked for a block: tag, number, hash or `{blockHash}`. */
export interface VectorNode {
  readonly url: string;
  close(): Promise<void>;
}

export interface VectorNodeOptions {
  readonly vectors: readonly Vector[];
  readonly chain: readonly VectorBlock[];
  /** Without it, `finalized` and `safe` are unknown to the node, and every block is recent. */
  readonly finalized?: boolean;
  /** Answers before the vectors are asked: state for simulations. */
  readonly answer?: (
    request: Request,
    number: (block: unknown) => number | undefined,
  ) => { result: unknown } | undefined;
  /** Methods that the node does not know. */
  readonly refused?: ReadonlySet<string>;
}

type Response = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** One name for a method by number and its twin by hash. */
const oneName = (method: string): string =>
  method.replace(/ByBlockHash/, "ByBlockNumber").replace(/ByHash$/, "ByNumber");

/** Methods whose first parameter is a block. */
const BY_BLOCK =
  /^eth_getBlock|^eth_getUncle|^eth_getTransactionByBlock|^eth_getRawTransactionByBlock|^eth_getHeader|^debug_getRaw(?:Block|Header|Receipts)|^debug_traceBlock|^trace_block/;

export const createVectorNode = async (options: VectorNodeOptions): Promise<VectorNode> => {
  const { chain } = options;
  const byHash = new Map(chain.map(({ number, hash }) => [hash, number]));
  const head = chain.length - 1;

  const numberOf = (block: unknown): number | undefined => {
    if (block === "latest" || block === "pending") {
      return head;
    }
    if (block === "safe" || block === "finalized") {
      return options.finalized ? head : undefined;
    }
    if (block === "earliest") {
      return 0;
    }
    if (typeof block === "string") {
      return byHash.get(block.toLowerCase()) ?? (/^0x[0-9a-f]{1,8}$/i.test(block) ? Number(block) : undefined);
    }
    if (isRecord(block)) {
      return numberOf(block.blockHash ?? block.blockNumber);
    }
    return undefined;
  };

  /** Blocks become `#number`; hex is lower case, quantities and slots lose their leading zeros, defaults are filled in. */
  const one = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      return value.map(one);
    }
    if (isRecord(value)) {
      if ("blockHash" in value || "blockNumber" in value) {
        return block(value);
      }
      return Object.fromEntries(
        Object.entries(value)
          .map(([key, item]) => [one(key), one(item)])
          .sort(),
      );
    }
    if (typeof value !== "string" || !/^0x/i.test(value)) {
      return value;
    }
    return value.toLowerCase().replace(/^0x0+(?=[0-9a-f])/, "0x");
  };
  const block = (value: unknown): unknown => {
    const number = numberOf(value);
    if (number !== undefined) {
      return `#${number}`;
    }
    return isRecord(value) && value.blockHash !== undefined ? value.blockHash : value;
  };
  const key = ({ method, params = [] }: Request): string => {
    const values = [...params];
    if (method === "eth_getLogs") {
      return JSON.stringify([method, values]);
    }
    const takesBlock = BY_BLOCK.test(method);
    const position = takesBlock ? 0 : values.findIndex((value, index) => index > 0 && numberOf(value) !== undefined);
    const at = takesBlock || position > 0 ? block(values[position]) : undefined;
    const rest = values.filter((_, index) => at === undefined || index !== position).map(one);
    return JSON.stringify([takesBlock ? oneName(method) : method, at ?? `#${head}`, rest]);
  };

  const known = new Map<string, Response>();
  const logs = new Map<string, Readonly<Record<string, unknown>>>();
  const learn = (value: unknown): void => {
    if (Array.isArray(value)) {
      value.forEach(learn);
    } else if (isRecord(value)) {
      if (Array.isArray(value.topics) && value.logIndex !== undefined && byHash.has(String(value.blockHash))) {
        logs.set(`${value.blockNumber}/${value.logIndex}`, value);
      } else {
        Object.values(value).forEach(learn);
      }
    }
  };
  for (const { method, exchanges } of options.vectors) {
    for (const { request, response } of exchanges) {
      known.set(key(request), response);
      if (method === "eth_getLogs" || method.includes("Receipt")) {
        learn(response.result);
      }
    }
  }

  /** The logs of all vectors, filtered. Complete for every filter of a vector. */
  const getLogs = (filter: Readonly<Record<string, unknown>>) => {
    const from = numberOf(filter.blockHash ?? filter.fromBlock ?? "latest") ?? 0;
    const to = numberOf(filter.blockHash ?? filter.toBlock ?? "latest") ?? head;
    const list = (value: unknown) => (Array.isArray(value) ? value : [value]).map((item) => String(item).toLowerCase());
    const topics = Array.isArray(filter.topics) ? filter.topics : [];
    return [...logs.values()]
      .filter(
        ({ blockNumber, address, topics: own }) =>
          Number(blockNumber) >= from &&
          Number(blockNumber) <= to &&
          (filter.address === undefined || filter.address === null || list(filter.address).includes(String(address))) &&
          topics.every(
            (wanted, index) =>
              wanted === null ||
              (Array.isArray(wanted) && wanted.length === 0) ||
              (Array.isArray(own) && list(wanted).includes(String(own[index]))),
          ),
      )
      .sort((a, b) => Number(a.blockNumber) - Number(b.blockNumber) || Number(a.logIndex) - Number(b.logIndex));
  };

  const answer = (request: Request): Response => {
    const { method, params = [] } = request;
    if (options.refused?.has(method)) {
      return { error: { code: -32601, message: `the method ${method} does not exist/is not available` } };
    }
    const own = options.answer?.(request, numberOf);
    if (own) {
      return own;
    }
    if (method === "eth_getLogs" && isRecord(params[0])) {
      const { blockHash } = params[0];
      if (blockHash !== undefined && !byHash.has(String(blockHash))) {
        return { error: { code: -32000, message: "unknown block" } };
      }
      return { result: getLogs(params[0]) };
    }
    if ((params[0] === "safe" || params[0] === "finalized") && !options.finalized) {
      return { error: { code: -32000, message: `${params[0]} block not found` } };
    }
    const found = known.get(key(request));
    if (found) {
      return found;
    }
    if (method === "eth_chainId") {
      return { result: "0xc72dd9d5e883e" };
    }
    if (method === "eth_blockNumber") {
      return { result: `0x${head.toString(16)}` };
    }
    if (method === "eth_getBlockByNumber" || method === "eth_getBlockByHash") {
      return { result: chain[numberOf(params[0]) ?? -1]?.fields ?? null };
    }
    return {
      error: { code: -32601, message: `the vectors do not tell ${method} ${JSON.stringify(params).slice(0, 200)}` },
    };
  };

  return startFront(async (text) => {
    const body: Request | readonly Request[] = JSON.parse(text);
    const reply = (item: Request) => ({ ...answer(item), jsonrpc: "2.0", id: item.id });
    return JSON.stringify(Array.isArray(body) ? body.map(reply) : reply(body as Request));
  });
};
