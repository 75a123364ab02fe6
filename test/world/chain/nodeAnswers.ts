import { type Address, type Data, formatData, formatQuantity } from "../../../src/ethereum/hex.ts";
import { FakeError } from "../../support/fakes/front.ts";
import { EMITTER, EMITTER_CODE } from "./emitter.ts";
import { EMITTER_CODE_HASH, proveEmitter } from "./emitterProof.ts";
import { ancestorAt, BASE_FEE, GAS_LIMIT, isAncestor, type TruthBlock } from "./truthBlock.ts";
import type { TruthChain } from "./truthChain.ts";

const SAFE_DEPTH = 16;
const FINALIZED_DEPTH = 40;
const DEPTHS: Readonly<Record<string, number>> = {
  latest: 0,
  pending: 0,
  safe: SAFE_DEPTH,
  finalized: FINALIZED_DEPTH,
};

/** The heads of one node, and the blocks of all its branches. */
export interface NodeView {
  readonly chain: Pick<TruthChain, "chainId" | "block" | "holding">;
  readonly head: TruthBlock;
}

type Params = readonly unknown[];
type Answer = (view: NodeView, params: Params) => unknown;

const lower = (address: unknown): Address => String(address).toLowerCase() as Address;

const findBlock = ({ chain, head }: NodeView, parameter: unknown): TruthBlock | undefined => {
  const id = typeof parameter === "object" && parameter !== null ? Reflect.get(parameter, "blockHash") : parameter;
  if (typeof id === "string" && id.length === 66) {
    return chain.block(id);
  }
  const depth = DEPTHS[String(id ?? "latest")];
  return ancestorAt(
    head,
    depth === undefined ? (id === "earliest" ? 0 : Number(id)) : Math.max(0, head.number - depth),
  );
};

const stateBlock = (view: NodeView, parameter: unknown): TruthBlock => {
  const block = findBlock(view, parameter);
  if (block === undefined) {
    throw new FakeError(-32_000, "header not found");
  }
  return block;
};

/** Returns the canonical block that contains a transaction. */
const findTransaction = ({ chain, head }: NodeView, hash: unknown): readonly [TruthBlock, number] | undefined => {
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
  if (address !== undefined && lower(address) !== EMITTER) {
    return [];
  }
  if (blockHash !== undefined) {
    const block = view.chain.block(blockHash);
    if (block === undefined) {
      throw new FakeError(-32_000, "unknown block");
    }
    return block.logs;
  }
  const from = findBlock(view, fromBlock)?.number ?? Number(fromBlock);
  const to = findBlock(view, toBlock)?.number ?? Number(toBlock);
  if (to > view.head.number) {
    throw new FakeError(-32_602, "block range extends beyond current head block");
  }
  const logs: (readonly unknown[])[] = [];
  for (let block = ancestorAt(view.head, to); block && block.number >= from; block = block.parent) {
    logs.push(block.logs);
  }
  return logs.toReversed().flat();
};

const atIndex = (block: TruthBlock | undefined, index: unknown): unknown => block?.transactions[Number(index)] ?? null;

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
    return found?.[0].receipts[found[1]] ?? null;
  },
  eth_getLogs: (view, [filter]) => readLogs(view, filter as Filter),
  eth_getBalance: (view, [address, block]) =>
    formatQuantity(stateBlock(view, block).state.balances.get(lower(address)) ?? 0n),
  eth_getTransactionCount: (view, [address, block]) =>
    formatQuantity(stateBlock(view, block).state.nonces.get(lower(address)) ?? 0n),
  eth_getCode: (view, [address, block]) => {
    stateBlock(view, block);
    return codeOf(address);
  },
  eth_getStorageAt: (view, [address, slot, block]) => slotOf(stateBlock(view, block), address, slot),
  eth_getProof: (view, [address, slots, block]) => formatProof(stateBlock(view, block), lower(address), slots),
  eth_feeHistory: (view, [count, block]) => formatFees(stateBlock(view, block), Number(count)),
  /** Only calls without data to the emitter are sent. */
  eth_call: (view, [call, block]) => {
    const { state } = stateBlock(view, block);
    return lower(Reflect.get(Object(call), "to")) === EMITTER ? state.slot : "0x";
  },
};

const codeOf = (address: unknown): Data => (lower(address) === EMITTER ? EMITTER_CODE : "0x");

const slotOf = ({ state }: TruthBlock, address: unknown, slot: unknown): Data =>
  lower(address) === EMITTER && BigInt(String(slot)) === 0n ? state.slot : formatData(new Uint8Array(32));

/** Only the emitter is in the state trie. */
const formatProof = ({ state }: TruthBlock, address: Address, slots: unknown) => {
  if (address !== EMITTER) {
    throw new FakeError(-32_000, "no proof");
  }
  const { accountProof, slotProof, storageHash } = proveEmitter(state.slot);
  return {
    ...{ address, accountProof, balance: "0x0", codeHash: EMITTER_CODE_HASH, nonce: "0x0", storageHash },
    storageProof: [slots]
      .flat()
      .map(String)
      .map((key) => {
        const value = formatQuantity(BigInt(key) === 0n ? BigInt(state.slot) : 0n);
        return { key, value, proof: slotProof };
      }),
  };
};

/** A fee history of blocks with one base fee. */
const formatFees = (newest: TruthBlock, count: number) => {
  const ratios: number[] = [];
  let oldest = newest;
  for (let block: TruthBlock | undefined = newest; block && ratios.length < count; block = block.parent) {
    oldest = block;
    ratios.unshift(Number(block.header.gasUsed) / Number(GAS_LIMIT));
  }
  const baseFeePerGas = [...ratios, 0].map(() => formatQuantity(BASE_FEE));
  return { oldestBlock: formatQuantity(oldest.number), baseFeePerGas, gasUsedRatio: ratios };
};

const formatBlock = (block: TruthBlock | undefined, isFull: unknown): unknown =>
  (isFull === true ? block?.fullJson : block?.json) ?? null;

const count = (block: TruthBlock | undefined): unknown =>
  block === undefined ? null : formatQuantity(block.hashes.length);

/** Answers a call as a node with this view does. Throws a FakeError. */
export const answerCall = (view: NodeView, method: string, params: Params): unknown => {
  const answer = ANSWERS[method];
  if (answer === undefined) {
    throw new FakeError(-32_601, `the method ${method} does not exist/is not available`);
  }
  return answer(view, params);
};
