import { setTimeout as sleep } from "node:timers/promises";
import { answerBody, FakeError, type NodeCall, type SocketFront, startSocketFront } from "../../support/fakes/front.ts";
import { answerCall, methodNotFound, type NodeView, stateBlock } from "../chain/nodeAnswers.ts";
import type { TraceDialect } from "../state/diffTrace.ts";
import type { StandInBlock, StandInChain } from "../state/standInChain.ts";
import { StandInCalls } from "./standInCalls.ts";

export interface StandInNodeOptions {
  readonly chain: StandInChain;
  /** Executes calls. Nodes of one chain can share it. Default: its own. */
  readonly execution?: StandInCalls;
  /** The form of traces. Undefined: the node has no traces. */
  readonly traces?: TraceDialect | undefined;
  /** Whether a node with traces has callTracer too. Default: true. */
  readonly hasCallTraces?: boolean | undefined;
  readonly hasAccessLists?: boolean | undefined;
  /** The node has proofs. The headers of the chain need state roots. */
  readonly hasProofs?: boolean | undefined;
  /** The node has execution witnesses. The headers of the chain need state roots. */
  readonly hasWitnesses?: boolean | undefined;
  /** Changes the results of some methods, as a node that lies. */
  readonly lies?: Readonly<Record<string, (result: unknown, params: readonly unknown[]) => unknown>> | undefined;
  /**
   * Pushes `newHeads`, as geth does: fields of a later fork are null, and responses over HTTP omit them
   * (docs/reference/state.md, Block access lists).
   */
  readonly pushes?: boolean | undefined;
  /** Time until the node answers a method. Default: at once. */
  readonly delayMs?: Readonly<Record<string, number>> | undefined;
  /** Called with each method before the node sends its response, which waits for the promise. */
  readonly beforeResponse?: ((method: string) => Promise<void> | undefined) | undefined;
}

interface TraceOptions {
  readonly tracer: string;
  readonly tracerConfig?: { readonly disableCode?: boolean };
}

type Handler = (params: readonly unknown[]) => unknown;

/** Fields of Amsterdam in a header that geth pushes before that fork. */
const NULL_FIELDS = { blockAccessListHash: null, slotNumber: null } as const;

const READS = [
  ...["eth_chainId", "net_version", "eth_blockNumber", "eth_gasPrice", "eth_getBlockByNumber", "eth_getBlockByHash"],
  ...["eth_getBlockReceipts", "eth_getBlockTransactionCountByHash", "eth_getTransactionByHash", "eth_call"],
  ...["eth_getTransactionReceipt", "eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt"],
];
const FINALITY = { safe: 100, finalized: 200 } as const;

/** An HTTP node that answers from a stand-in chain, by number, tag or hash, and counts its calls. */
export class StandInNode {
  /** Calls by method since the last `reset`. Batch items count singly. */
  readonly calls = new Map<string, number>();
  /** The head of a branch on which the node stays. Undefined: it follows the chain. */
  head: StandInBlock | undefined;
  readonly #options: StandInNodeOptions;
  readonly #execution: StandInCalls;
  readonly #sources: Readonly<Record<string, Handler>>;
  readonly #front: SocketFront;
  readonly #stopPushing: () => void;

  private constructor(options: StandInNodeOptions, execution: StandInCalls, front: SocketFront) {
    this.#options = options;
    this.#execution = execution;
    this.#front = front;
    this.#sources = this.#createSources();
    this.#stopPushing =
      options.pushes === true
        ? options.chain.onBlock(({ json }) => front.push({ ...NULL_FIELDS, ...json }))
        : () => undefined;
  }

  static async start(options: StandInNodeOptions): Promise<StandInNode> {
    const execution = options.execution ?? (await StandInCalls.create(options.chain));
    const front = await startSocketFront((body) => answerBody(body, (call) => node.#answer(call)));
    const node = new StandInNode(options, execution, front);
    return node;
  }

  get url(): string {
    return this.#front.url;
  }

  get wsUrl(): string {
    return this.#front.wsUrl;
  }

  /** Resolves when the first subscription arrives. */
  get subscribed(): Promise<void> {
    return this.#front.subscribed;
  }

  /** Closes the listener and all connections, as a process that ends. Returns the function that listens on the same port again. */
  stop(): Promise<() => Promise<void>> {
    return this.#front.stop();
  }

  close(): Promise<void> {
    this.#stopPushing();
    return this.#front.close();
  }

  #view(): NodeView {
    const { chain } = this.#options;
    const head = this.head ?? chain.latest;
    return { chain, head, finality: FINALITY, call: (...asked) => this.#execution.answer(...asked) };
  }

  #createSources(): Record<string, Handler> {
    const { chain, traces, hasCallTraces = true, hasAccessLists = false } = this.#options;
    const { hasWitnesses = false } = this.#options;
    const sources: Record<string, Handler> = {};
    if (traces !== undefined) {
      sources.debug_traceBlockByHash = ([hash, options]) => {
        const block = chain.block(hash);
        if (block === undefined) {
          throw new FakeError(-32_000, "block not found");
        }
        const { tracer, tracerConfig } = options as TraceOptions;
        if (tracer === "callTracer") {
          if (!hasCallTraces) {
            throw new FakeError(-32_000, "tracer not found");
          }
          return block.callTrace;
        }
        return block.trace({ dialect: traces, disableCode: tracerConfig?.disableCode === true });
      };
    }
    if (hasAccessLists) {
      sources.eth_getBlockAccessList = ([block]) => this.#blockOf(block).accessList?.json ?? null;
      sources.debug_getRawBlockAccessList = ([block]) => this.#blockOf(block).accessList?.raw ?? null;
    }
    if (hasWitnesses) {
      sources.debug_executionWitness = ([block]) => {
        const state = chain.witnessOf(this.#blockOf(block)) ?? [];
        return { state, codes: [], keys: null, headers: [] };
      };
    }
    return sources;
  }

  #blockOf(parameter: unknown): StandInBlock {
    const block = this.#options.chain.block(stateBlock(this.#view(), parameter).hash);
    if (block === undefined) {
      throw new FakeError(-32_000, "header not found");
    }
    return block;
  }

  #honest(method: string, params: readonly unknown[]): unknown {
    const source = this.#sources[method];
    if (source !== undefined) {
      return source(params);
    }
    if (!READS.includes(method) && !(method === "eth_getProof" && this.#options.hasProofs === true)) {
      throw methodNotFound(method);
    }
    return answerCall(this.#view(), method, params);
  }

  async #answer({ method, params }: NodeCall): Promise<unknown> {
    this.calls.set(method, (this.calls.get(method) ?? 0) + 1);
    const delayMs = this.#options.delayMs?.[method] ?? 0;
    if (delayMs > 0) {
      await sleep(delayMs);
    }
    const honest = await this.#honest(method, params);
    const result = this.#options.lies?.[method]?.(honest, params) ?? honest;
    await this.#options.beforeResponse?.(method);
    return result;
  }
}
