import { bloomOfLogs } from "../../../src/ethereum/bloom.ts";
import type { Address, Hex } from "../../../src/ethereum/hex.ts";
import type { Receipt } from "../../../src/ethereum/receipt.ts";
import { createLog, STORE_GAS } from "./emitter.ts";
import { emitterRoot, proofOfEmitter } from "./emitterProof.ts";
import { CANCUN_FIELDS, type SealedBlock, type SentTransaction, sealBlock } from "./sealedBlock.ts";
import type { TruthState } from "./truthState.ts";

export const FEE_RECIPIENT: Address = `0x${"fe".repeat(20)}`;

export interface TruthTransaction extends SentTransaction {
  /** The word that it stores and emits. */
  readonly word: Hex;
  /** The gas that its block gives back. */
  readonly refund: bigint;
}

/** The content that decides a block's hash. */
export interface BlockContent {
  readonly parent: TruthBlock | undefined;
  readonly timestamp: bigint;
  /** Makes the hashes of two blocks with one state different. */
  readonly extraData: Hex;
  readonly transactions: readonly TruthTransaction[];
  readonly state: TruthState;
}

export interface TruthBlock extends SealedBlock {
  readonly parent: TruthBlock | undefined;
  readonly state: TruthState;
  readonly receipts: readonly Readonly<Record<string, unknown>>[];
}

/** Returns the receipts of a block's transactions. */
export const receiptsOf = (transactions: readonly TruthTransaction[]): readonly Receipt[] => {
  let cumulativeGasUsed = 0n;
  return transactions.map(({ transaction, word, refund }) => {
    const logs = [createLog(word)];
    cumulativeGasUsed += STORE_GAS - refund;
    return { type: transaction.type, status: true, cumulativeGasUsed, logs, logsBloom: bloomOfLogs(logs) };
  });
};

/** Creates a block of transactions to the emitter. */
export const createTruthBlock = (content: BlockContent): TruthBlock => {
  const { parent, timestamp, extraData, transactions, state } = content;
  const refunds = transactions.flatMap(({ refund }, index) => (refund > 0n ? [{ index, gasRefund: refund }] : []));
  const sealed = sealBlock({
    ...{ parent, own: transactions, receipts: receiptsOf(transactions) },
    refunds: refunds.length === 0 ? undefined : refunds,
    header: {
      ...{ miner: FEE_RECIPIENT, stateRoot: emitterRoot(state.word), timestamp, extraData },
      ...CANCUN_FIELDS,
    },
  });
  return {
    ...sealed,
    ...{ parent, state, receipts: sealed.receipts ?? [] },
    proofOf: (address, slots) => proofOfEmitter(state.word, address, slots),
  };
};
