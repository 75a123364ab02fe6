import { type Address, type Data, formatQuantity } from "../../../src/ethereum/hex.ts";
import { FakeError } from "../../support/fakes/front.ts";
import type { TraceDialect } from "../state/diffTrace.ts";
import { wordOf, ZERO_WORD } from "../state/stateKeys.ts";
import { ancestorAt, BASE_FEE, type BlockState, GAS_LIMIT, isAncestor, type SealedBlock } from "./sealedBlock.ts";

/** The depth of blocks below the head. */
export interface Finality {
  readonly safe: number;
  readonly finalized: number;
}

const FINALITY: Finality = { safe: 16, finalized: 40 };

/** The blocks that a node knows, of all branches. */
export interface NodeRecord {
  readonly chainId: number;
  readonly finality?: Finality;
  /** Executes calls. Default: a contract returns its slot 0. */
  readonly execution?: { answer(block: SealedBlock, call: CallObject, overrides: Overrides): unknown };
  block(hash: unknown): SealedBlock | undefined;
  /** Returns the blocks that contain a transaction. */
  holding(transaction: unknown): readonly SealedBlock[];
}

/** The parameters of eth_call that nodes know. */
export interface CallObject {
  readonly from?: Address;
  readonly to?: Address;
  readonly data?: Data;
  readonly input?: Data;
  readonly gas?: Data;
  readonly value?: Data;
}

export type Overrides = Readonly<Record<Address, { readonly code?: Data; readonly balance?: Data }>>;

/** What not every node of a chain has. */
export interface NodeAbilities {
  /** The form of traces. Undefined: the node has no traces. */
  readonly traces?: TraceDialect | undefined;
  /** Whether a node with traces has callTracer too. Default: true. */
  readonly hasCallTraces?: boolean | undefined;
  /** The node has execution witnesses. The headers of the chain need state roots. */
  readonly hasWitnesses?: boolean | undefined;
}

/** What a node answers from: its head, and what it knows. */
export interface NodeView extends NodeAbilities {
  readonly chain: NodeRecord;
  readonly head: SealedBlock;
}

type Params = readonly unknown[];
type Answer = (view: NodeView, params: Params) => unknown;

const lower = (address: unknown): Address => String(address).toLowerCase() as Address;

const findBlock = ({ chain, head }: NodeView, parameter: unknown): SealedBlock | undefined => {
  const id = typeof parameter === "object" && parameter !== null ? Reflect.get(parameter, "blockHash") : parameter;
  if (typeof id === "string" && id.length === 66) {
    return chain.block(id);
  }
  const depths: Readonly<Record<string, number>> = {
    latest: 0,
    pending: 0,
    earliest: head.number,
    ...FINALITY,
    ...chain.finality,
  };
  const depth = depths[String(id ?? "latest")];
  return ancestorAt(head, depth === undefined ? Number(id) : Math.max(0, head.number - depth));
};

const stateBlock = (view: NodeView, parameter: unknown): SealedBlock => {
  const block = findBlock(view, parameter);
  if (block === undefined) {
    throw new FakeError(-32_000, "header not found");
  }
  return block;
};

/** Returns the canonical block that contains a transaction. */
const findTransaction = ({ chain, head }: NodeView, hash: unknown): readonly [SealedBlock, number] | undefined => {
  const block = chain.holding(hash).find((each) => chain.block(each.hash) !== undefined && isAncestor(each, head));
  return block && [block, block.hashes.indexOf(hash as `0x${string}`)];
};

interface Filter {
  readonly address?: string;
  readonly topics?: readonly unknown[];
  readonly fromBlock?: string;
  readonly toBlock?: string;
  readonly blockHash?: string;
}

const readLogs = (view: NodeView, { address, fromBlock, toBlock, blockHash }: Filter): readonly unknown[] => {
  const ofAddress = ({ logs }: SealedBlock): readonly unknown[] =>
    address === undefined ? logs : logs.filter((log) => log.address === lower(address));
  if (blockHash !== undefined) {
    const block = view.chain.block(blockHash);
    if (block === undefined) {
      throw new FakeError(-32_000, "unknown block");
    }
    return ofAddress(block);
  }
  const from = findBlock(view, fromBlock)?.number ?? Number(fromBlock);
  const to = findBlock(view, toBlock)?.number ?? Number(toBlock);
  if (to > view.head.number) {
    throw new FakeError(-32_602, "block range extends beyond current head block");
  }
  const logs: (readonly unknown[])[] = [];
  for (let block = ancestorAt(view.head, to); block && block.number >= from; block = block.parent) {
    logs.push(ofAddress(block));
  }
  return logs.toReversed().flat();
};

const atIndex = (block: SealedBlock | undefined, index: unknown): unknown => block?.transactions[Number(index)] ?? null;

const ANSWERS: Readonly<Record<string, Answer>> = {
  eth_chainId: ({ chain }) => formatQuantity(chain.chainId),
  net_version: ({ chain }) => String(chain.chainId),
  web3_clientVersion: () => "soak/1.0",
  eth_blockNumber: ({ head }) => formatQuantity(head.number),
  eth_gasPrice: () => "0x8",
  eth_syncing: () => false,
  net_peerCount: () => "0x19",
  eth_getBlockByNumber: (view, [tag, isFull]) => formatBlock(findBlock(view, tag), isFull),
  eth_getBlockByHash: ({ chain }, [hash, isFull]) => formatBlock(chain.block(hash), isFull),
  eth_getBlockReceipts: (view, [block]) => findBlock(view, block)?.receipts ?? null,
  eth_getBlockTransactionCountByNumber: (view, [tag]) => count(findBlock(view, tag)),
  eth_getBlockTransactionCountByHash: ({ chain }, [hash]) => count(chain.block(hash)),
  eth_getTransactionByBlockNumberAndIndex: (view, [tag, index]) => atIndex(findBlock(view, tag), index),
  eth_getTransactionByBlockHashAndIndex: ({ chain }, [hash, index]) => atIndex(chain.block(hash), index),
  eth_getTransactionByHash: (view, [hash]) => {
    const found = findTransaction(view, hash);
    return found?.[0].transactions[found[1]] ?? null;
  },
  eth_getRawTransactionByHash: (view, [hash]) => {
    const found = findTransaction(view, hash);
    return found?.[0].raws[found[1]] ?? null;
  },
  eth_getTransactionReceipt: (view, [hash]) => {
    const found = findTransaction(view, hash);
    return found?.[0].receipts?.[found[1]] ?? null;
  },
  eth_getLogs: (view, [filter]) => readLogs(view, filter as Filter),
  eth_getBalance: (view, [address, block]) => formatQuantity(stateAt(view, block).balance(lower(address))),
  eth_getTransactionCount: (view, [address, block]) => formatQuantity(stateAt(view, block).nonce(lower(address))),
  eth_getCode: (view, [address, block]) => stateAt(view, block).code(lower(address)),
  eth_getStorageAt: (view, [address, slot, block]) =>
    stateAt(view, block).slot(lower(address), wordOf(BigInt(String(slot)))),
  eth_getProof: (view, [address, slots, block]) => {
    const proof = stateBlock(view, block).proofOf?.(lower(address), [slots].flat().map(String));
    if (proof === undefined) {
      throw new FakeError(-32_000, "missing trie node");
    }
    return proof;
  },
  eth_getBlockAccessList: (view, [block]) => stateBlock(view, block).accessList?.json,
  debug_getRawBlockAccessList: (view, [block]) => stateBlock(view, block).accessList?.raw,
  debug_executionWitness: (view, [block]) => {
    const state = stateBlock(view, block).witness?.() ?? [];
    return { state, codes: [], keys: null, headers: [] };
  },
  debug_traceBlockByHash: (view, [hash, options]) => traceBlock(view, hash, options as TraceOptions),
  eth_feeHistory: (view, [count, block]) => formatFees(stateBlock(view, block), Number(count)),
  eth_call: (view, [call, block, overrides]) =>
    (view.chain.execution ?? SLOT_READS).answer(stateBlock(view, block), Object(call), Object(overrides)),
};

const stateAt = (view: NodeView, parameter: unknown): BlockState => stateBlock(view, parameter).state;

const SLOT_READS = {
  answer: ({ state }: SealedBlock, { to }: CallObject): Data =>
    to === undefined || state.code(lower(to)) === "0x" ? "0x" : state.slot(lower(to), ZERO_WORD),
};

interface TraceOptions {
  readonly tracer: string;
  readonly tracerConfig?: { readonly disableCode?: boolean };
}

const traceBlock = (
  { chain, traces: dialect = "geth", hasCallTraces = true }: NodeView,
  hash: unknown,
  { tracer, tracerConfig }: TraceOptions,
): unknown => {
  const block = chain.block(hash);
  if (block === undefined || (tracer === "callTracer" && !hasCallTraces)) {
    throw new FakeError(-32_000, block === undefined ? "block not found" : "tracer not found");
  }
  return tracer === "callTracer"
    ? block.callTrace
    : block.trace?.({ dialect, disableCode: tracerConfig?.disableCode === true });
};

/** Whether a node has a method that others do not have. */
const ABILITIES: Readonly<Record<string, (view: NodeView) => boolean>> = {
  eth_getProof: ({ head }) => head.proofOf !== undefined,
  eth_getBlockAccessList: ({ head }) => head.accessList !== undefined,
  debug_getRawBlockAccessList: ({ head }) => head.accessList !== undefined,
  debug_executionWitness: ({ hasWitnesses }) => hasWitnesses === true,
  debug_traceBlockByHash: ({ traces }) => traces !== undefined,
};

/** A fee history of blocks with one base fee. */
const formatFees = (newest: SealedBlock, count: number) => {
  const ratios: number[] = [];
  let oldest = newest;
  for (let block: SealedBlock | undefined = newest; block && ratios.length < count; block = block.parent) {
    oldest = block;
    ratios.unshift(Number(block.header.gasUsed) / Number(GAS_LIMIT));
  }
  const baseFeePerGas = [...ratios, 0].map(() => formatQuantity(BASE_FEE));
  return { oldestBlock: formatQuantity(oldest.number), baseFeePerGas, gasUsedRatio: ratios };
};

const formatBlock = (block: SealedBlock | undefined, isFull: unknown): unknown =>
  (isFull === true ? block?.fullJson : block?.json) ?? null;

const count = (block: SealedBlock | undefined): unknown =>
  block === undefined ? null : formatQuantity(block.hashes.length);

/** Answers a call as a node with this view does. Throws a FakeError. */
export const answerCall = (view: NodeView, method: string, params: Params): unknown => {
  const answer = ANSWERS[method];
  if (answer === undefined || ABILITIES[method]?.(view) === false) {
    throw new FakeError(-32_601, `the method ${method} does not exist/is not available`);
  }
  return answer(view, params);
};
