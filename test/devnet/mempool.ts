import secp256k1 from "secp256k1";
import { type Address, formatData, type Hash } from "../../src/ethereum/hex.ts";
import { keccak256 } from "../../src/ethereum/keccak.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import {
  DEPOSIT_TYPE,
  InvalidTransaction,
  type SignedTransaction,
  signatureParts,
} from "../../src/ethereum/transaction.ts";

export interface HeldTransaction {
  readonly transaction: SignedTransaction;
  readonly sender: Address;
}

/** A rejected transaction, with the error text of a node. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly code: number;

  constructor(message: string, code = -32000) {
    super(message);
    this.code = code;
  }
}

export interface Mempool {
  /** Adds a transaction. Throws Refused. `next` is the sender's nonce after all transactions of the node. */
  add(held: HeldTransaction, next: bigint): void;
  /** Adds transactions that the node discarded, before all others. */
  putBack(entries: readonly HeldTransaction[]): void;
  find(hash: Hash): HeldTransaction | undefined;
  senders(): Address[];
  /** Returns the nonce after the waiting transactions that follow `next` without a gap. */
  nonceAfter(sender: Address, next: bigint): bigint;
  /** Removes and returns the transactions for a block, in order of arrival: no gap in nonces, and up to `gasLeft` gas. */
  take(nonces: Map<Address, bigint>, gasLeft: bigint): HeldTransaction[];
}

export const readSent = (raw: Uint8Array, chainId: bigint): HeldTransaction => {
  try {
    const transaction = parseTransaction(raw);
    if (transaction.type === DEPOSIT_TYPE) {
      throw new Refused("transaction type not supported");
    }
    if (transaction.chainId !== undefined && transaction.chainId !== chainId) {
      throw new Refused("invalid chain id");
    }
    return { transaction, sender: recoverSender(transaction) };
  } catch (error) {
    if (error instanceof InvalidTransaction) {
      throw new Refused(`invalid transaction: ${error.message}`);
    }
    throw error;
  }
};

const recoverSender = (transaction: SignedTransaction): Address => {
  const { signature, recoveryId, digest } = signatureParts(transaction);
  try {
    const key = secp256k1.ecdsaRecover(signature, recoveryId, digest, false);
    return formatData(keccak256(key.subarray(1)).subarray(12));
  } catch {
    throw new Refused("invalid sender");
  }
};

const feeOf = ({ transaction }: HeldTransaction): bigint =>
  transaction.type === 0 || transaction.type === 1 ? transaction.gasPrice : transaction.maxFeePerGas;

/** Transactions from clients that were not sent to the node yet. */
export const createMempool = (): Mempool => {
  const held = new Map<string, HeldTransaction>();
  const slot = (sender: Address, nonce: bigint) => `${sender}:${nonce}`;
  const slotOf = ({ sender, transaction }: HeldTransaction) => slot(sender, transaction.nonce);

  return {
    add: (entry, next) => {
      const { nonce, hash } = entry.transaction;
      const rival = held.get(slotOf(entry));
      if (rival?.transaction.hash === hash) {
        throw new Refused("already known");
      }
      if (nonce < next) {
        throw new Refused(`nonce too low: next nonce ${next}, tx nonce ${nonce}`);
      }
      if (rival !== undefined && feeOf(entry) * 10n < feeOf(rival) * 11n) {
        throw new Refused("replacement transaction underpriced");
      }
      held.set(slotOf(entry), entry);
    },
    putBack: (entries) => {
      const others = [...held];
      held.clear();
      for (const entry of entries) {
        held.set(slotOf(entry), entry);
      }
      for (const [key, entry] of others) {
        held.set(key, entry);
      }
    },
    find: (hash) => held.values().find(({ transaction }) => transaction.hash === hash),
    senders: () => [...new Set(held.values().map(({ sender }) => sender))],
    nonceAfter: (sender, next) => {
      let nonce = next;
      while (held.has(slot(sender, nonce))) {
        nonce++;
      }
      return nonce;
    },
    take: (nonces, gasLeft) => {
      const taken: HeldTransaction[] = [];
      let left = gasLeft;
      let found = true;
      while (found) {
        found = false;
        for (const entry of held.values()) {
          const { sender, transaction } = entry;
          if (transaction.nonce < (nonces.get(sender) ?? 0n)) {
            held.delete(slotOf(entry));
          }
          if (nonces.get(sender) !== transaction.nonce || transaction.gas > left) {
            continue;
          }
          nonces.set(sender, transaction.nonce + 1n);
          left -= transaction.gas;
          held.delete(slotOf(entry));
          taken.push(entry);
          found = true;
        }
      }
      return taken;
    },
  };
};
