import { setTimeout as sleep } from "node:timers/promises";
import { type Address, formatQuantity, type Hash } from "../../../src/ethereum/hex.ts";
import { answerBody, FakeError, type NodeCall, type SocketFront, startSocketFront } from "../../support/fakes/front.ts";
import type { ShownChain } from "../state/branchView.ts";
import type { TraceDialect } from "../state/diffTrace.ts";
import { CHAIN_ID, type StandInBlock } from "../state/standInChain.ts";
import { wordOf } from "../state/stateKeys.ts";
import { type CallObject, formatReturnData, GAS_PRICE, type Overrides, StandInCalls } from "./standInCalls.ts";

export interface StandInNodeOptions {
  readonly chain: ShownChain;
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

const SAFE_DEPTH = 100;
const FINALIZED_DEPTH = 200;

const methodNotFound = (method: string) =>
  new FakeError(-32_601, `the method ${method} does not exist/is not available`);

/** An HTTP node that answers from a stand-in chain, by number, tag or hash, and counts its calls. */
export class StandInNode {
  /** Calls by method since the last `reset`. Batch items count singly. */
  readonly calls = new Map<string, number>();
  readonly #options: StandInNodeOptions;
  readonly #execution: StandInCalls;
  readonly #handlers: Readonly<Record<string, Handler>>;
  readonly #front: SocketFront;
  readonly #stopPushing: () => void;

  private constructor(options: StandInNodeOptions, execution: StandInCalls, front: SocketFront) {
    this.#options = options;
    this.#execution = execution;
    this.#front = front;
    this.#handlers = { ...this.#createReads(), ...this.#createSources() };
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

  #createReads(): Record<string, Handler> {
    const { chain } = this.#options;
    const stateAt = (parameter: unknown) => chain.stateAt(this.#blockOf(parameter).hash);
    return {
      eth_chainId: () => formatQuantity(CHAIN_ID),
      net_version: () => String(CHAIN_ID),
      eth_blockNumber: () => formatQuantity(chain.height),
      eth_gasPrice: () => GAS_PRICE,
      eth_getBlockByNumber: ([tag, isFull]) => this.#format(this.#byTag(tag), isFull),
      eth_getBlockByHash: ([hash, isFull]) => this.#format(chain.block(hash), isFull),
      eth_getBlockReceipts: ([block]) => this.#blockOf(block).receipts ?? null,
      eth_getBlockTransactionCountByHash: ([hash]) => {
        const block = chain.block(hash);
        return block === undefined ? null : formatQuantity(transactionsOf(block).length);
      },
      eth_getTransactionByHash: ([hash]) =>
        this.#newest((block) => transactionsOf(block).find((transaction) => transaction.hash === hash)),
      eth_getTransactionReceipt: ([hash]) =>
        this.#newest(({ receipts }) => receipts?.find(({ transactionHash }) => transactionHash === hash)),
      eth_getBalance: ([address, block]) => formatQuantity(stateAt(block).balance(lower(address))),
      eth_getTransactionCount: ([address, block]) => formatQuantity(stateAt(block).nonce(lower(address))),
      eth_getCode: ([address, block]) => stateAt(block).code(lower(address)),
      eth_getStorageAt: ([address, slot, block]) => stateAt(block).slot(lower(address), wordOf(BigInt(slot as string))),
      eth_call: async ([call, block, overrides]) => {
        const at = this.#blockOf(block);
        const result = await this.#execution.call(at, call as CallObject, (overrides ?? {}) as Overrides);
        if (result.status !== "success") {
          throw new FakeError(3, "execution reverted", formatReturnData(result));
        }
        return formatReturnData(result);
      },
    };
  }

  #createSources(): Record<string, Handler> {
    const { chain, traces, hasCallTraces = true, hasAccessLists = false } = this.#options;
    const { hasProofs = false, hasWitnesses = false } = this.#options;
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
    if (hasProofs) {
      sources.eth_getProof = ([address, slots, block]) => {
        const proof = chain.proofAt(this.#blockOf(block).hash, lower(address), slots as readonly Hash[]);
        if (proof === undefined) {
          throw new FakeError(-32_000, "missing trie node");
        }
        return proof;
      };
    }
    return sources;
  }

  /** Searches the newest blocks, from the head down. */
  #newest<T>(find: (block: StandInBlock) => T | undefined): T | null {
    const { chain } = this.#options;
    for (let number = chain.height; number > chain.height - FINALIZED_DEPTH; number--) {
      const block = chain.at(number);
      const found = block && find(block);
      if (found !== undefined) {
        return found;
      }
    }
    return null;
  }

  #format(block: StandInBlock | undefined, isFull: unknown): object | null {
    return (isFull === true ? block?.fullJson : block?.json) ?? null;
  }

  #byTag(tag: unknown): StandInBlock | undefined {
    const { chain } = this.#options;
    const depths: Readonly<Record<string, number>> = { latest: 0, safe: SAFE_DEPTH, finalized: FINALIZED_DEPTH };
    const depth = depths[String(tag)];
    if (depth !== undefined) {
      return chain.at(Math.max(0, chain.height - depth));
    }
    return chain.at(tag === "earliest" ? 0 : Number(tag));
  }

  #blockOf(parameter: unknown): StandInBlock {
    const { chain } = this.#options;
    const id = typeof parameter === "object" && parameter !== null ? Reflect.get(parameter, "blockHash") : parameter;
    const isHash = typeof id === "string" && id.length === 66;
    const block = isHash ? chain.block(id as Hash) : this.#byTag(id ?? "latest");
    if (block === undefined) {
      throw new FakeError(-32_000, "header not found");
    }
    return block;
  }

  async #answer({ method, params }: NodeCall): Promise<unknown> {
    this.calls.set(method, (this.calls.get(method) ?? 0) + 1);
    const delayMs = this.#options.delayMs?.[method] ?? 0;
    if (delayMs > 0) {
      await sleep(delayMs);
    }
    const handler = this.#handlers[method];
    if (handler === undefined) {
      throw methodNotFound(method);
    }
    const honest = await handler(params);
    const result = this.#options.lies?.[method]?.(honest, params) ?? honest;
    await this.#options.beforeResponse?.(method);
    return result;
  }
}

const transactionsOf = ({ fullJson }: StandInBlock): readonly Readonly<Record<string, unknown>>[] =>
  Reflect.get(fullJson, "transactions");

const lower = (address: unknown): Address => String(address).toLowerCase() as Address;
