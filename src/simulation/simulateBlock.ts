import { blobBaseFee } from "../ethereum/blobFee.ts";
import { type BlockHeader, EMPTY_REQUESTS_HASH, encodeHeader } from "../ethereum/blockHeader.ts";
import { bloomOfLogs } from "../ethereum/bloom.ts";
import { type Hash, parseData, ZERO_HASH } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { encodeReceipt } from "../ethereum/receipt.ts";
import { encodeBytes, encodeList, encodeNumber } from "../ethereum/rlp.ts";
import { isForkActive, type Rules } from "../ethereum/rules.ts";
import type { BlockEnvironment } from "../evm/engine.ts";
import type { PlannedBlock } from "./blockPlan.ts";
import { type ExecutionOptions, executeBlock, realLogs } from "./executeBlock.ts";
import type { Withdrawal } from "./payload.ts";
import type { SimulatedCall } from "./simulateCall.ts";
import { beginHeader, type HeaderStart, type ParentBlock, type Profile } from "./simulatedHeader.ts";
import { type SimulatedTransaction, simulatedTransaction } from "./simulatedTransaction.ts";

export interface BlockContext extends ExecutionOptions {
  readonly parentRules: Rules;
  blockHash(number: bigint): Hash;
}

export interface SimulatedBlock {
  readonly header: BlockHeader;
  readonly hash: Hash;
  /** Of the header's encoding. */
  readonly headerLength: number;
  readonly rules: Rules;
  readonly calls: readonly SimulatedCall[];
  readonly transactions: readonly SimulatedTransaction[];
  readonly withdrawals: readonly Withdrawal[];
}

/** Simulates one block: overrides, system calls, the client's calls, withdrawals and the header. */
export const simulateBlock = async (
  parent: ParentBlock,
  planned: PlannedBlock,
  context: BlockContext,
): Promise<SimulatedBlock> => {
  const { rules, profile } = context;
  const start = beginHeader(parent, planned, context);
  const { parentHash, parentBeaconBlockRoot = ZERO_HASH } = start;
  const { calls, gasUsed, footprint, requestsHash } = await executeBlock(planned, {
    ...context,
    start: { parentHash, parentBeaconBlockRoot },
    block: environmentOf(start, planned, context),
  });
  const transactions = calls.map(({ message }) => simulatedTransaction(message, rules.chainId));
  const withdrawals = planned.overrides.withdrawals ?? [];
  const header: BlockHeader = {
    ...start,
    // Most of the state is not known, so the root cannot be computed.
    stateRoot: ZERO_HASH,
    transactionsRoot: orderedTrieRoot(transactions.map(({ raw }) => raw)),
    receiptsRoot: receiptsRoot(calls, transactions),
    logsBloom: bloomOfLogs(calls.flatMap(({ result }) => realLogs(result.logs))),
    gasUsed,
    ...(isForkActive(rules, "shanghai") ? { withdrawalsRoot: withdrawalsRoot(withdrawals, profile) } : {}),
    ...(isForkActive(rules, "cancun") ? { blobGasUsed: blobGasUsed(calls, footprint) } : {}),
    ...(isForkActive(rules, "prague") ? { requestsHash: requestsHash ?? EMPTY_REQUESTS_HASH } : {}),
    // The list has accesses and values of the whole state after each call, which are not known.
    ...(isForkActive(rules, "amsterdam") ? { blockAccessListHash: ZERO_HASH } : {}),
  };
  const encoded = encodeHeader(header);
  const hash = keccak256Hex(encoded);
  return { header, hash, headerLength: encoded.length, rules, calls, transactions, withdrawals };
};

const environmentOf = (start: HeaderStart, planned: PlannedBlock, context: BlockContext): BlockEnvironment => {
  const { blobs } = context.rules;
  return {
    number: start.number,
    timestamp: start.timestamp,
    coinbase: start.miner,
    gasLimit: start.gasLimit,
    baseFee: start.baseFeePerGas ?? 0n,
    prevRandao: planned.overrides.prevRandao ?? ZERO_HASH,
    difficulty: start.difficulty ?? 0n,
    ...(start.slotNumber === undefined ? {} : { slotNumber: start.slotNumber }),
    blobBaseFee:
      planned.overrides.blobBaseFee ?? (blobs === undefined ? 1n : blobBaseFee(start.excessBlobGas ?? 0n, blobs)),
    blockHash: context.blockHash,
  };
};

const receiptsRoot = (calls: readonly SimulatedCall[], transactions: readonly SimulatedTransaction[]): Hash => {
  let cumulativeGasUsed = 0n;
  const receipts = calls.map(({ result }, at) => {
    cumulativeGasUsed += result.gasUsed;
    const logs = realLogs(result.logs);
    const type = transactions[at]?.message.type ?? 0;
    const status = result.status === "success";
    return encodeReceipt({ type, status, cumulativeGasUsed, logs, logsBloom: bloomOfLogs(logs) });
  });
  return orderedTrieRoot(receipts);
};

const withdrawalsRoot = (withdrawals: readonly Withdrawal[], profile: Profile): Hash =>
  profile === "geth" ? orderedTrieRoot(withdrawals.map(encodeWithdrawal)) : ZERO_HASH;

/** Encodes a withdrawal. Source: EIP-4895. */
export const encodeWithdrawal = ({ index, validatorIndex, address, amount }: Withdrawal): Uint8Array =>
  encodeList([
    encodeNumber(index),
    encodeNumber(validatorIndex),
    encodeBytes(parseData(address)),
    encodeNumber(amount),
  ]);

const blobGasUsed = (calls: readonly SimulatedCall[], footprint: bigint | undefined): bigint =>
  footprint === undefined
    ? calls.reduce((sum, { result }) => sum + result.blobGasUsed, 0n)
    : footprint * BigInt(calls.length);
