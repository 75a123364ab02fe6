import { blobBaseFee } from "../../ethereum/blockFees.ts";
import type { Address } from "../../ethereum/hex.ts";
import { createdAddress } from "../../ethereum/receipt.ts";
import type { BlobSchedule } from "../../ethereum/rules.ts";
import type { TracedBlock, TracedTransaction } from "./tracedBlock.ts";
import type { TransactionCalls, TransactionDiff } from "./traceTexts.ts";

/** Nonces that an account used for creations in one transaction. */
interface UsedNonces {
  readonly creator: Address;
  readonly first: bigint;
  /** The first nonce that was not used. */
  readonly end: bigint;
}

/** No transaction has gas for more creations. A node may still claim them. */
const MAX_CREATIONS = 4_096n;

const nonceBefore = ({ pre }: TransactionDiff, address: Address): bigint => pre.get(address)?.nonce ?? 0n;

/** Whether the diff shows that a contract was created at the address (EIP-161: its nonce begins at 1). */
const isNew = (diff: TransactionDiff, address: Address): boolean =>
  nonceBefore(diff, address) === 0n && (diff.post.get(address)?.nonce ?? 0n) > 0n;

const ownNonce = (diff: TransactionDiff, { sender, nextNonce }: TracedTransaction): bigint =>
  nextNonce === undefined ? nonceBefore(diff, sender) : nextNonce - 1n;

/** Returns the nonces of sender and authorities before the first call: the transaction and its authorizations raise them (EIP-7702). */
const noncesAtCall = (diff: TransactionDiff, transaction: TracedTransaction): ReadonlyMap<Address, bigint> => {
  const { sender, authorizations } = transaction;
  const nonces = new Map([[sender, ownNonce(diff, transaction) + 1n]]);
  for (const { authority, nonce } of authorizations) {
    const current = nonces.get(authority) ?? nonceBefore(diff, authority);
    nonces.set(authority, nonce === current ? current + 1n : current);
  }
  return nonces;
};

const creationsOf = (diff: TransactionDiff, transaction: TracedTransaction): readonly UsedNonces[] => {
  const atCall = noncesAtCall(diff, transaction);
  const used: UsedNonces[] = [];
  for (const [creator, { nonce: end }] of diff.post) {
    const before = nonceBefore(diff, creator);
    const first = atCall.get(creator) ?? (before === 0n ? 1n : before);
    if (end !== undefined && end > first) {
      used.push({ creator, first, end });
    }
  }
  return used;
};

/**
 * Whether a creation is not that of a new account in the diff. The address of CREATE2 cannot be computed from the diff.
 * So a new account does not explain it: another account, which the diff leaves out, may have created the new one.
 */
const hasUnexplained = (diff: TransactionDiff, { creator, first, end }: UsedNonces): boolean => {
  if (end - first > MAX_CREATIONS) {
    return true;
  }
  for (let nonce = first; nonce < end; nonce++) {
    if (!isNew(diff, createdAddress(creator, nonce))) {
      return true;
    }
  }
  return false;
};

const mayTransactionLeaveOut = (diff: TransactionDiff, transaction: TracedTransaction): boolean => {
  const { pre, post } = diff;
  const { isCreation, sender, authorizations } = transaction;
  return (
    // Nothing shows how many contracts such an account created.
    pre.keys().some((address) => !post.has(address)) ||
    // A geth that takes each SELFDESTRUCT for a destruction leaves out a new authority that ran it (go-ethereum#33050).
    authorizations.some(({ authority, nonce }) => nonce === 0n && !post.has(authority)) ||
    (isCreation && !isNew(diff, createdAddress(sender, ownNonce(diff, transaction)))) ||
    creationsOf(diff, transaction).some((used) => hasUnexplained(diff, used))
  );
};

const balanceChange = ({ pre, post }: TransactionDiff): bigint => {
  let sum = 0n;
  for (const [address, { balance }] of post) {
    sum += balance === undefined ? 0n : balance - (pre.get(address)?.balance ?? 0n);
  }
  return sum;
};

/** Returns the sum of all changes of balances by the transactions of a block. Undefined: the price of its blobs is not known. */
const expectedChange = (block: TracedBlock, blobs: BlobSchedule | undefined): bigint | undefined => {
  const { transactions, baseFee, gasUsed, blobGasUsed, excessBlobGas } = block;
  // OP stacks burn nothing: their vaults receive all fees. Deposits bring what they mint.
  if (transactions.some(({ mint }) => mint !== undefined)) {
    return transactions.reduce((sum, { mint = 0n }) => sum + mint, 0n);
  }
  if (blobGasUsed === 0n) {
    return -(baseFee * gasUsed);
  }
  return blobs && -(baseFee * gasUsed + blobBaseFee(excessBlobGas, blobs) * blobGasUsed);
};

/**
 * Whether the diffs of a block may leave out an account. Those of geth leave out a new contract that ran SELFDESTRUCT.
 * It may still be there: because that was reverted, or with its balance (EIP-8246). Its creation has raised a nonce.
 * If the creation was reverted too, only a balance can be left out. Then the sum of all balances does not fit.
 */
export const mayLeaveOutAccounts = (
  diffs: readonly TransactionDiff[],
  block: TracedBlock,
  blobs: BlobSchedule | undefined,
): boolean =>
  diffs.reduce((sum, diff) => sum + balanceChange(diff), 0n) !== expectedChange(block, blobs) ||
  diffs.some((diff, index) => {
    const transaction = block.transactions[index];
    return transaction !== undefined && mayTransactionLeaveOut(diff, transaction);
  });

/** Whether the calls of a transaction have all creations that its diff shows. */
export const hasAllCreations = (
  diff: TransactionDiff,
  transaction: TracedTransaction,
  { transactionHash, creations }: TransactionCalls,
): boolean =>
  transactionHash === transaction.hash &&
  creationsOf(diff, transaction).every(({ creator, first, end }) => {
    const own = transaction.isCreation && creator === transaction.sender ? 1n : 0n;
    return BigInt(creations.get(creator) ?? 0) >= end - first + own;
  });
