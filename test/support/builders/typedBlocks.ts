import { EMPTY_REQUESTS_HASH, formatHeader, hashHeader } from "../../../src/ethereum/blockHeader.ts";
import { createBloom } from "../../../src/ethereum/bloom.ts";
import { formatTransaction } from "../../../src/ethereum/formatTransaction.ts";
import {
  type Address,
  type Data,
  formatData,
  formatQuantity,
  type Hash,
  ZERO_ADDRESS,
  ZERO_HASH,
} from "../../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
import { parseTransaction } from "../../../src/ethereum/parseTransaction.ts";
import { encodePostExec, POST_EXEC_TYPE } from "../../../src/ethereum/postExec.ts";
import { encodeReceipt } from "../../../src/ethereum/receipt.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber } from "../../../src/ethereum/rlp.ts";
import { DEPOSIT_TYPE } from "../../../src/ethereum/transaction.ts";
import { encodeRpcTransaction } from "../../../src/verification/encodeRpcTransaction.ts";
import { signWalletTransaction, walletAddress } from "../../world/state/walletKeys.ts";
import { createFakeChain, type FakeBlock, type FakeChain } from "../fakes/fakeChain.ts";

export type Fields = Readonly<Record<string, unknown>>;

export interface TypedBlock extends FakeBlock {
  /** With whole transactions. */
  readonly full: Fields & { readonly transactions: readonly Fields[] };
  readonly receipts: readonly Fields[];
  readonly rawTransactions: readonly Data[];
  readonly rawReceipts: readonly Data[];
}

export interface TypedChainOptions {
  readonly chainId: number;
  readonly height: number;
  /** The types of the transactions of each block. One of 0x7D is last, and gives back gas to those of type 2. */
  readonly types: readonly number[];
  /** Receipts of unknown types have a further field. Default: no. */
  readonly hasOwnReceipts?: boolean;
  readonly startSeconds?: number;
  /** Headers have the fields of Amsterdam. Default: no. */
  readonly isAmsterdam?: boolean;
}

const GAS = 40_000n;
const REFUND = 5_000n;
const MAX_KNOWN_TYPE = 4;
const SECONDS_PER_BLOCK = 2;
const RECIPIENT: Address = `0x${"22".repeat(20)}`;
const BASE_FEE = 7n;

/** The transaction object of a type, without its place, and its bytes. */
const transactionOf = (
  type: number,
  number: bigint,
  index: number,
  types: readonly number[],
): { readonly fields: Fields; readonly raw: Uint8Array } => {
  const common = { type: formatQuantity(type), from: `0x${"11".repeat(20)}`, gas: formatQuantity(GAS), value: "0x1" };
  if (type === POST_EXEC_TYPE) {
    const refunds = types.flatMap((each, at) => (each === 2 ? [{ index: at, gasRefund: REFUND }] : []));
    const raw = encodePostExec(number, refunds);
    const fields = { ...common, from: ZERO_ADDRESS, gas: "0x0", value: "0x0", input: formatData(raw.subarray(1)) };
    return { fields, raw };
  }
  const nonce = formatQuantity(number * 100n + BigInt(index));
  if (type > MAX_KNOWN_TYPE && type !== DEPOSIT_TYPE) {
    const raw = concatBytes([Uint8Array.of(type), encodeList([encodeNumber(number), encodeNumber(index)])]);
    return { fields: { ...common, nonce, to: RECIPIENT, feeCurrency: RECIPIENT }, raw };
  }
  if (type === 2) {
    const call = { chainId: 1n, nonce: BigInt(nonce), to: RECIPIENT, value: 1n, data: new Uint8Array(0) } as const;
    const raw = signWalletTransaction(0, call);
    const place = { sender: walletAddress(0), blockHash: null, blockNumber: number, transactionIndex: index };
    return { fields: formatTransaction(parseTransaction(raw), { ...place, baseFee: BASE_FEE }), raw };
  }
  const fields = {
    ...{
      ...common,
      nonce,
      to: RECIPIENT,
      input: "0x",
      v: "0x0",
      yParity: "0x0",
      r: formatQuantity(number + 1n),
      s: "0x1",
    },
    ...{ gasPrice: "0x7", chainId: "0x1", maxFeePerGas: "0x9", maxPriorityFeePerGas: "0x1", accessList: [] },
    ...(type === DEPOSIT_TYPE && { sourceHash: keccak256Hex(encodeNumber(number)), mint: "0x0" }),
  };
  return { fields, raw: encodeRpcTransaction(fields) ?? new Uint8Array(0) };
};

/** The bytes of a receipt: those of the usual encoding, or with a further field. */
const receiptBytes = (type: number, cumulativeGasUsed: bigint, hasOwnField: boolean): Uint8Array => {
  const receipt = { type, status: true, cumulativeGasUsed, logs: [], logsBloom: createBloom() };
  if (!hasOwnField) {
    return encodeReceipt(receipt);
  }
  const fields = [encodeNumber(1), encodeNumber(cumulativeGasUsed), encodeBytes(createBloom()), encodeList([])];
  return concatBytes([Uint8Array.of(type), encodeList([...fields, encodeNumber(7)])]);
};

const isUnknown = (type: number): boolean => ![0, 1, 2, 3, 4, DEPOSIT_TYPE, POST_EXEC_TYPE].includes(type);

const createTypedBlock = (options: TypedChainOptions, number: number, parentHash: Hash): TypedBlock => {
  const { types, hasOwnReceipts = false, isAmsterdam = false, startSeconds = 1_800_000_000 } = options;
  const timestamp = BigInt(startSeconds + number * SECONDS_PER_BLOCK);
  const bare = types.map((type, index) => transactionOf(type, BigInt(number), index, types));
  const gasOf = (type: number): bigint =>
    type === POST_EXEC_TYPE ? 0n : type === 2 && types.includes(POST_EXEC_TYPE) ? GAS - REFUND : GAS;
  const cumulative = types.map((_, index) => types.slice(0, index + 1).reduce((sum, type) => sum + gasOf(type), 0n));
  const rawReceipts = types.map((type, index) =>
    receiptBytes(type, cumulative[index] ?? 0n, hasOwnReceipts && isUnknown(type)),
  );
  const header = {
    ...({ parentHash, miner: ZERO_ADDRESS, stateRoot: ZERO_HASH, mixHash: ZERO_HASH, extraData: "0x" } as const),
    ...{ logsBloom: createBloom(), number: BigInt(number), gasLimit: 30_000_000n, timestamp, baseFeePerGas: BASE_FEE },
    gasUsed: cumulative.at(-1) ?? 0n,
    transactionsRoot: orderedTrieRoot(bare.map(({ raw }) => raw)),
    receiptsRoot: orderedTrieRoot(rawReceipts),
    ...{ withdrawalsRoot: orderedTrieRoot([]), blobGasUsed: 0n, excessBlobGas: 0n, parentBeaconBlockRoot: ZERO_HASH },
    requestsHash: EMPTY_REQUESTS_HASH,
    ...(isAmsterdam && { blockAccessListHash: ZERO_HASH, slotNumber: BigInt(number) }),
  };
  const hash = hashHeader(header);
  const place = { blockHash: hash, blockNumber: formatQuantity(BigInt(number)) };
  const transactions: readonly Fields[] = bare.map(({ fields, raw }, index) => ({
    ...{ ...fields, ...place, transactionIndex: formatQuantity(index), hash: keccak256Hex(raw) },
  }));
  const json = { ...formatHeader(header, hash), size: "0x400", uncles: [], withdrawals: [] };
  const receipts = transactions.map((transaction, index) => {
    const type = types[index] ?? 0;
    const { hash: transactionHash, transactionIndex } = transaction;
    const from = bare[index]?.fields.from;
    return {
      ...{ ...place, transactionHash, transactionIndex, from, type: formatQuantity(type), contractAddress: null },
      ...{
        status: "0x1",
        gasUsed: formatQuantity(gasOf(type)),
        cumulativeGasUsed: formatQuantity(cumulative[index] ?? 0n),
      },
      ...{ logs: [], logsBloom: formatData(createBloom()), effectiveGasPrice: "0x8" },
      to: type === POST_EXEC_TYPE ? null : RECIPIENT,
      opGasRefund: type === 2 && types.includes(POST_EXEC_TYPE) ? formatQuantity(REFUND) : null,
    };
  });
  return {
    ...{ number: BigInt(number), hash, parentHash, timestamp },
    json: { ...json, transactions: transactions.map((transaction) => transaction.hash) },
    full: { ...json, transactions },
    receipts,
    rawTransactions: bare.map(({ raw }) => formatData(raw)),
    rawReceipts: rawReceipts.map(formatData),
  };
};

export interface TypedChain {
  readonly chain: FakeChain;
  readonly blocks: readonly TypedBlock[];
}

/** A chain of blocks with right hashes and roots, whose transactions have the given types. */
export const createTypedChain = (options: TypedChainOptions): TypedChain => {
  const blocks: TypedBlock[] = [];
  for (let number = 0; number <= options.height; number++) {
    blocks.push(createTypedBlock(options, number, blocks.at(-1)?.hash ?? ZERO_HASH));
  }
  const { chainId, height } = options;
  return { chain: createFakeChain({ base: blocks, height, chainId, secondsPerBlock: SECONDS_PER_BLOCK }), blocks };
};

export interface TypedHandlers {
  /** The node has the bytes of transactions and receipts. */
  readonly hasRaws?: boolean;
  /** Changes the results of some methods, as a node that lies. */
  readonly lies?: Readonly<Record<string, (result: Fields, params: readonly unknown[]) => unknown>>;
}

type Handler = (params: readonly unknown[]) => unknown;

/** The methods of a node of the chain. */
export const typedHandlers = (
  { blocks }: TypedChain,
  { hasRaws = false, lies = {} }: TypedHandlers = {},
): Readonly<Record<string, Handler>> => {
  const depths: Readonly<Record<string, number>> = { latest: 1, pending: 1, safe: 5, finalized: 9 };
  const blockOf = (parameter: unknown): TypedBlock | undefined => {
    const id = typeof parameter === "object" && parameter !== null ? Reflect.get(parameter, "blockHash") : parameter;
    const depth = depths[String(id)];
    return blocks.find(({ hash }) => hash === id) ?? blocks.at(depth === undefined ? Number(id) : -depth);
  };
  const pairOf = (hash: unknown) =>
    blocks.flatMap((block) => {
      const index = block.full.transactions.findIndex((each) => each.hash === hash);
      return index < 0 ? [] : [{ block, index }];
    })[0];
  const getBlock: Handler = ([id, isFull]) => {
    const block = blockOf(id);
    return (isFull === true ? block?.full : block?.json) ?? null;
  };
  const honest: Record<string, Handler> = {
    eth_getBlockByNumber: getBlock,
    eth_getBlockByHash: getBlock,
    eth_getBlockReceipts: ([id]) => blockOf(id)?.receipts ?? null,
    eth_getTransactionByHash: ([hash]) => {
      const pair = pairOf(hash);
      return pair?.block.full.transactions[pair.index] ?? null;
    },
    eth_getTransactionReceipt: ([hash]) => {
      const pair = pairOf(hash);
      return pair?.block.receipts[pair.index] ?? null;
    },
    ...(hasRaws && {
      eth_getRawTransactionByHash: ([hash]: readonly unknown[]) => {
        const pair = pairOf(hash);
        return pair?.block.rawTransactions[pair.index] ?? null;
      },
      debug_getRawReceipts: ([id]: readonly unknown[]) => blockOf(id)?.rawReceipts ?? null,
    }),
  };
  const lying = Object.entries(lies).map(([method, lie]): readonly [string, Handler] => [
    method,
    (params) => {
      const result = honest[method]?.(params) ?? null;
      return result === null ? null : lie(result as Fields, params);
    },
  ]);
  return { ...honest, ...Object.fromEntries(lying) };
};
