import { setTimeout as delay } from "node:timers/promises";
import type { Context } from "../../src/core/context.ts";
import { type Node, NodeError, type NodeErrorKind } from "../../src/core/node.ts";
import type { RpcRequest } from "../../src/core/rpcSource.ts";
import { formatData, formatQuantity } from "../../src/ethereum/hex.ts";
import { type LogFilter, parseLogQuery, withoutWildcards } from "../../src/ethereum/logFilter.ts";
import { errorKind, logsRefusal } from "../../src/nodes/errorKind.ts";
import { type FakeBlock, formatLogsOf } from "./fakeChain.ts";

export interface LogsRequest {
  readonly from: number;
  readonly to: number;
  readonly filter: LogFilter;
  readonly byHash: boolean;
  /** Number of matching logs. */
  readonly results: number;
}

export interface FakeLogNodeOptions {
  /** Read at every request. A test may replace it (a reorganisation). */
  chain: readonly FakeBlock[];
  name?: string;
  latencyMs?: number;
  timestamps?: boolean;
  /** Ignores empty positions at the end of a filter, as reth and anvil do. */
  ignoresWildcards?: boolean;
  /** The announced head; the newest block of `chain` by default. */
  head?: number;
  /** The machine behind the URL has no block above this number. */
  machineHead?: number;
  /** Blocks below this number have no receipts, and `[]` as logs. */
  prunedBelow?: number;
  /** Returns the error of a request, for faults and limits. */
  onLogs?: (request: LogsRequest) => Error | undefined;
  /** Returns the logs of the response. */
  change?: (logs: readonly unknown[], request: LogsRequest) => readonly unknown[];
  /** Ranges that it gets at a time; 8 by default. */
  maxLogRanges?: number;
  available?: () => boolean;
  /** Suspended or not identified if false. */
  usable?: () => boolean;
  /** Responses have bodies of several chunks. */
  streams?: boolean;
}

export interface FakeLogNode extends Node {
  readonly options: FakeLogNodeOptions;
  /** All calls in order. */
  readonly calls: { readonly method: string; readonly params: readonly unknown[] }[];
  /** eth_getLogs requests. */
  readonly logsRequests: LogsRequest[];
  /** The highest number of concurrent eth_getLogs requests. */
  readonly mostInFlight: () => number;
}

const encoder = new TextEncoder();
const CHUNK_BYTES = 65_536;

async function* inChunks(body: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < body.length; at += CHUNK_BYTES) {
    yield body.subarray(at, at + CHUNK_BYTES);
  }
}
const LIMITS = { maxAddresses: 1_000_000, maxTopics: 1_000_000 };

/** Creates the error of a node, as `NodeErrors` does for its text. */
export const nodeError = (
  message: string,
  code = -32000,
  kind: NodeErrorKind = errorKind(code, message, 200, false),
): NodeError => new NodeError(kind, "fake", message, { code, refusal: logsRefusal(kind, message) });

/** Creates a node with a fake chain, limits and faults. */
export const createFakeLogNode = (options: FakeLogNodeOptions): FakeLogNode => {
  const calls: FakeLogNode["calls"] = [];
  const logsRequests: LogsRequest[] = [];
  let oldest = 0n;
  let inFlight = 0;
  let mostInFlight = 0;

  const machineHead = () => Math.min(options.machineHead ?? Number.POSITIVE_INFINITY, options.chain.length - 1);
  const blockAt = (number: unknown): FakeBlock | undefined =>
    typeof number === "string" && Number(number) <= machineHead() ? options.chain[Number(number)] : undefined;
  const byHash = (hash: unknown) => options.chain.slice(0, machineHead() + 1).find((block) => block.hash === hash);

  const formatBlock = (block: FakeBlock | undefined) =>
    block && {
      number: formatQuantity(block.number),
      hash: block.hash,
      parentHash: block.parentHash,
      timestamp: formatQuantity(block.timestamp),
      logsBloom: formatData(block.logsBloom),
      transactions: block.logs.map((_, at) => formatLogsOf(block, { addresses: [], topics: [] })[at]?.transactionHash),
    };

  const recordPruned = (block: FakeBlock) => Number(block.number) < (options.prunedBelow ?? 0);

  const getLogs = (parameter: unknown): readonly unknown[] => {
    const { filter: requested, blocks } = parseLogQuery(parameter, LIMITS);
    const filter = options.ignoresWildcards ? withoutWildcards(requested) : requested;
    const wanted =
      "blockHash" in blocks
        ? [byHash(blocks.blockHash)]
        : options.chain.slice(Number(blocks.fromBlock), Math.min(Number(blocks.toBlock), machineHead()) + 1);
    const logs = wanted.flatMap((block) => {
      if (block === undefined) {
        throw nodeError("unknown block", -32000, "missingData");
      }
      return recordPruned(block) ? [] : formatLogsOf(block, filter, { timestamps: options.timestamps ?? true });
    });
    const range =
      "blockHash" in blocks
        ? { from: Number(wanted[0]?.number), to: Number(wanted[0]?.number) }
        : { from: Number(blocks.fromBlock), to: Number(blocks.toBlock) };
    const request = { ...range, filter: requested, byHash: "blockHash" in blocks, results: logs.length };
    logsRequests.push(request);
    const error = options.onLogs?.(request);
    if (error !== undefined) {
      throw error;
    }
    return options.change?.(logs, request) ?? logs;
  };

  const answer = (method: string, params: readonly unknown[]): unknown => {
    switch (method) {
      case "eth_getLogs":
        return getLogs(params[0]);
      case "eth_getBlockByNumber":
        return formatBlock(blockAt(params[0])) ?? null;
      case "eth_getBlockByHash":
        return formatBlock(byHash(params[0])) ?? null;
      case "eth_getBlockReceipts": {
        const block = blockAt(params[0]);
        return block === undefined || recordPruned(block) ? null : [{ status: "0x1" }];
      }
      default:
        throw nodeError(`${method} is not supported`, -32601, "unsupportedMethod");
    }
  };

  return {
    name: options.name ?? "fake",
    origin: options.name ?? "fake",
    priority: 0,
    maxLogRanges: options.maxLogRanges ?? 8,
    accepts: () => true,
    serves: () => true,
    options,
    calls,
    logsRequests,
    mostInFlight: () => mostInFlight,
    get head() {
      return BigInt(options.head ?? options.chain.length - 1);
    },
    get available() {
      return (options.usable?.() ?? true) && (options.available?.() ?? true);
    },
    get use() {
      if (options.usable?.() === false) {
        return "no";
      }
      return options.available?.() === false ? "lastResort" : "yes";
    },
    get oldest() {
      return oldest;
    },
    recordPruned: (_method, number) => {
      if (number >= oldest) {
        oldest = number + 1n;
      }
    },
    batch: () => Promise.reject(new Error("unexpected batch")),
    request: async ({ method, params }: RpcRequest, { signal }: Context) => {
      calls.push({ method, params });
      const counts = method === "eth_getLogs" ? 1 : 0;
      inFlight += counts;
      mostInFlight = Math.max(mostInFlight, inFlight);
      try {
        if (options.latencyMs !== undefined) {
          await delay(options.latencyMs, undefined, { signal });
        }
        signal.throwIfAborted();
        const body = encoder.encode(JSON.stringify(answer(method, params)));
        return { body: options.streams ? inChunks(body) : body, status: { fwd: "miss" } };
      } finally {
        inFlight -= counts;
      }
    },
  };
};
