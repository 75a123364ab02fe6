import { setTimeout as wait } from "node:timers/promises";
import type { StateFetch } from "../../src/core/stateFetch.ts";
import {
  type Address,
  type Data,
  formatData,
  formatQuantity,
  type Hash,
  isHash,
  ZERO_HASH,
} from "../../src/ethereum/hex.ts";
import { type ChainForks, rulesAt } from "../../src/ethereum/rules.ts";
import type { BlockEnvironment } from "../../src/evm/engine.ts";
import { CODES, RpcError } from "../../src/jsonrpc/rpcError.ts";
import { startFront } from "../support/fakes/front.ts";
import type { Ask } from "../support/fakes/nodeState.ts";
import { NotInWitness, type WitnessState } from "./witness.ts";
import { type TracedCall, type Tracer, traceAccessList, tracePrestate } from "./witnessTrace.ts";

/** A sealed block of the execution API, or only its header. */
export type WitnessBlock = Readonly<Record<string, unknown>> & { readonly number: Data; readonly hash: Hash };

type Tracing = "debug_traceCall" | "eth_createAccessList";

export interface WitnessNodeOptions {
  readonly forks: ChainForks;
  /** Ascending, linked. The last one is the head; `setHead` changes it. */
  readonly blocks: readonly WitnessBlock[];
  /** The state after each block, by block hash. */
  readonly states: ReadonlyMap<Hash, WitnessState>;
  /** Duration of a round trip. Default 0. */
  readonly latencyMs?: number;
  /** Tracing methods of the node. Default: none. */
  readonly tracers?: readonly Tracing[];
  /** Replaces or adds the results of methods. After `undefined`, the node answers itself. */
  readonly handlers?: Readonly<Record<string, (params: readonly unknown[]) => unknown>>;
}

/** A fake node whose state is from execution witnesses. */
export interface WitnessNode {
  /** Sends one call in a separate round trip. Rejects with RpcError. */
  readonly ask: Ask;
  /** Sends several calls in one round trip. */
  readonly fetch: StateFetch;
  /** Batches and HTTP requests since the start. */
  readonly roundTrips: number;
  /** The calls of each round trip, by method. */
  readonly trips: readonly ReadonlyMap<string, number>[];
  /** Number of reads that no witness covers. Their result is an empty value. */
  readonly unknownReads: number;
  latencyMs: number;
  /** The HTTP server answers every request with status 503. */
  isDown: boolean;
  setHead(number: bigint): void;
  /** Traces these calls in advance, so that the computation takes no time later. A real node is faster. */
  prepare(block: Hash, calls: readonly TracedCall[]): Promise<void>;
  /** Starts an HTTP server on a free port. */
  listen(): Promise<string>;
  close(): Promise<void>;
}

interface Request {
  readonly id: unknown;
  readonly method: string;
  readonly params?: readonly unknown[];
}

const word = (value: Uint8Array): Data => `0x${formatData(value).slice(2).padStart(64, "0")}`;
const methodNotFound = (method: string) =>
  new RpcError(CODES.METHOD_NOT_FOUND, `the method ${method} does not exist/is not available`);

export const createWitnessNode = (options: WitnessNodeOptions): WitnessNode => {
  const { forks, blocks, states, tracers = [], handlers = {} } = options;
  const trips: ReadonlyMap<string, number>[] = [];
  const closers: (() => Promise<void>)[] = [];
  let latencyMs = options.latencyMs ?? 0;
  let head = BigInt(blocks.at(-1)?.number ?? 0);
  let isDown = false;
  let unknownReads = 0;

  const blockOf = (parameter: unknown): WitnessBlock | undefined => {
    const id = typeof parameter === "object" && parameter !== null ? Object.values(parameter)[0] : parameter;
    if (isHash(id)) {
      return blocks.find(({ hash }) => hash === id);
    }
    const number = id === "latest" || id === undefined ? head : BigInt(String(id));
    return blocks.find((block) => BigInt(block.number) === number && number <= head);
  };

  /** Reads a key. If the next block did not change the key, its witness may contain the value too. */
  const read = <T>(parameter: unknown, read: (state: WitnessState) => T): T | undefined => {
    const block = blockOf(parameter);
    if (block === undefined || !states.has(block.hash)) {
      throw new RpcError(-32_000, "header not found");
    }
    for (const { hash } of blocks.slice(blocks.indexOf(block))) {
      const state = states.get(hash);
      if (state === undefined) {
        break;
      }
      try {
        return read(state);
      } catch (error) {
        if (!(error instanceof NotInWitness)) {
          throw error;
        }
      }
    }
    unknownReads++;
    return undefined;
  };

  const codeAt = (parameter: unknown, address: Address): Uint8Array =>
    read(parameter, (state) => {
      const account = state.account(address);
      return account === undefined ? new Uint8Array(0) : state.code(account.codeHash);
    }) ?? new Uint8Array(0);

  const tracerAt = (parameter: unknown): Tracer => {
    const block = blockOf(parameter);
    if (block === undefined) {
      throw new RpcError(-32_000, "header not found");
    }
    const environment = environmentOf(block);
    return {
      rules: rulesAt(forks, environment.number, environment.timestamp),
      block: { ...environment, blockHash: (number) => blockOf(formatQuantity(number))?.hash ?? ZERO_HASH },
      state: {
        account: (address) => read(block.hash, (state) => state.account(address)),
        code: (_hash, address) => codeAt(block.hash, address),
        storage: (address, slot) => read(block.hash, (state) => state.slot(address, slot)) ?? new Uint8Array(0),
        blockHash: (number) => blockOf(formatQuantity(number))?.hash ?? ZERO_HASH,
      },
    };
  };

  const traced = new Map<string, unknown>();
  const trace = async (method: Tracing, call: TracedCall, parameter: unknown): Promise<unknown> => {
    if (!tracers.includes(method)) {
      throw methodNotFound(method);
    }
    const key = [method, blockOf(parameter)?.hash, call.from, call.to, call.value, call.data ?? call.input].join();
    const known = traced.get(key);
    if (known !== undefined) {
      return known;
    }
    const run = method === "debug_traceCall" ? tracePrestate : traceAccessList;
    const result = await run(tracerAt(parameter), call);
    traced.set(key, result);
    return result;
  };

  const answer = (method: string, params: readonly unknown[]): unknown => {
    const [first, second, third] = params;
    const handled = handlers[method]?.(params);
    if (handled !== undefined) {
      return handled;
    }
    const address = first as Address;
    switch (method) {
      case "eth_chainId":
        return formatQuantity(forks.chainId);
      case "eth_blockNumber":
        return formatQuantity(head);
      case "eth_getBlockByNumber":
      case "eth_getBlockByHash":
        return blockOf(first) ?? null;
      case "eth_getBalance":
        return formatQuantity(read(second, (state) => state.account(address)?.balance) ?? 0n);
      case "eth_getTransactionCount":
        return formatQuantity(read(second, (state) => state.account(address)?.nonce) ?? 0n);
      case "eth_getCode":
        return formatData(codeAt(second, address));
      case "eth_getStorageAt":
        return word(read(third, (state) => state.slot(address, second as Hash)) ?? new Uint8Array(0));
      case "debug_traceCall":
      case "eth_createAccessList":
        return trace(method, first as TracedCall, second);
      default:
        throw methodNotFound(method);
    }
  };

  /** Subtracts the time of the computation from the latency, because a real node needs little. */
  const roundTrip = async (calls: readonly Pick<Request, "method" | "params">[]): Promise<unknown[]> => {
    const counts = new Map<string, number>();
    for (const { method } of calls) {
      counts.set(method, (counts.get(method) ?? 0) + 1);
    }
    trips.push(counts);
    const untilMs = performance.now() + latencyMs;
    const outcomes: unknown[] = [];
    for (const { method, params = [] } of calls) {
      try {
        outcomes.push(await answer(method, params));
      } catch (error) {
        outcomes.push(error instanceof RpcError ? error : new RpcError(-32_000, String(error)));
      }
    }
    const leftMs = untilMs - performance.now();
    if (leftMs > 0) {
      await wait(leftMs);
    }
    return outcomes;
  };

  const respond = ({ id }: Request, outcome: unknown) =>
    outcome instanceof RpcError
      ? { jsonrpc: "2.0", id, error: { code: outcome.code, message: outcome.message } }
      : { jsonrpc: "2.0", id, result: outcome };

  const listen = async (): Promise<string> => {
    const front = await startFront(async (text) => {
      const body: unknown = JSON.parse(text);
      if (isDown) {
        return { status: 503, text: "" };
      }
      const requests = (Array.isArray(body) ? body : [body]) as Request[];
      const outcomes = await roundTrip(requests);
      const responses = requests.map((each, at) => respond(each, outcomes[at]));
      return JSON.stringify(Array.isArray(body) ? responses : responses[0]);
    });
    closers.push(front.close);
    return front.url;
  };

  return {
    ask: async (method, params) => {
      const [outcome] = await roundTrip([{ method, params }]);
      if (outcome instanceof Error) {
        throw outcome;
      }
      return outcome;
    },
    fetch: async (calls) => ({
      outcomes: await roundTrip(calls.map(({ method, params }) => ({ method, params: params as readonly unknown[] }))),
    }),
    trips,
    get roundTrips() {
      return trips.length;
    },
    get unknownReads() {
      return unknownReads;
    },
    get latencyMs() {
      return latencyMs;
    },
    set latencyMs(next) {
      latencyMs = next;
    },
    get isDown() {
      return isDown;
    },
    set isDown(next) {
      isDown = next;
    },
    setHead: (number) => {
      head = number;
    },
    prepare: async (block, calls) => {
      for (const method of tracers) {
        for (const call of calls) {
          await trace(method, call, { blockHash: block }).catch(() => undefined);
        }
      }
    },
    listen,
    close: async () => {
      for (const close of closers) {
        await close();
      }
    },
  };
};

const environmentOf = (block: WitnessBlock): Omit<BlockEnvironment, "blockHash"> => ({
  number: BigInt(block.number),
  timestamp: BigInt(String(block.timestamp)),
  coinbase: String(block.miner) as Address,
  gasLimit: BigInt(String(block.gasLimit)),
  baseFee: BigInt(String(block.baseFeePerGas)),
  prevRandao: String(block.mixHash) as Hash,
  blobBaseFee: 1n,
});
