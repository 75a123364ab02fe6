import { type Address, formatData, formatQuantity, type Hash } from "./hex.ts";
import type { Authorization, SignedTransaction, Transaction } from "./transaction.ts";
import { DEPOSIT_TYPE } from "./transaction.ts";

/** The position of a transaction. `blockHash` is null if the block is not sealed. */
export interface TransactionLocation {
  readonly sender: Address;
  readonly blockHash: Hash | null;
  readonly blockNumber: bigint;
  readonly transactionIndex: number;
  /** Present if the chain's nodes return it. */
  readonly blockTimestamp?: bigint;
  readonly baseFee?: bigint;
  /** From the receipt of a deposit, because a deposit has no nonce. */
  readonly depositNonce?: bigint;
  readonly depositReceiptVersion?: bigint;
  /** Deposits have `yParity`, as in op-reth. Default: they do not, as in op-geth. */
  readonly hasDepositYParity?: boolean;
}

export type RpcTransaction = Readonly<Record<string, unknown>>;

/** Formats the transaction object of the execution API, like geth and reth. Deposits are formatted like op-geth. */
export const formatTransaction = (transaction: Transaction, location: TransactionLocation): RpcTransaction => {
  const common = {
    blockHash: location.blockHash,
    blockNumber: formatQuantity(location.blockNumber),
    ...(location.blockTimestamp === undefined ? {} : { blockTimestamp: formatQuantity(location.blockTimestamp) }),
    from: location.sender,
    gas: formatQuantity(transaction.gas),
    gasPrice: formatQuantity(effectiveGasPrice(transaction, location.baseFee)),
    hash: transaction.hash,
    input: formatData(transaction.input),
    to: transaction.to,
    transactionIndex: formatQuantity(location.transactionIndex),
    type: formatQuantity(transaction.type),
    value: formatQuantity(transaction.value),
  };
  if (transaction.type !== DEPOSIT_TYPE) {
    return { ...common, ...formatSigned(transaction) };
  }
  return {
    ...common,
    from: transaction.from,
    nonce: formatQuantity(location.depositNonce ?? 0n),
    sourceHash: transaction.sourceHash,
    mint: formatQuantity(transaction.mint),
    ...(transaction.isSystemTx ? { isSystemTx: true } : {}),
    ...(location.depositReceiptVersion === undefined
      ? {}
      : { depositReceiptVersion: formatQuantity(location.depositReceiptVersion) }),
    ...(location.hasDepositYParity === true ? { yParity: "0x0" } : {}),
    v: "0x0",
    r: "0x0",
    s: "0x0",
  };
};

/** Returns the sender's price per gas. Without a base fee (not in a block) it is the maximum. */
export const effectiveGasPrice = (transaction: Transaction, baseFee: bigint | undefined): bigint => {
  if (transaction.type === DEPOSIT_TYPE) {
    return 0n;
  }
  if (transaction.type === 0 || transaction.type === 1) {
    return transaction.gasPrice;
  }
  if (baseFee === undefined) {
    return transaction.maxFeePerGas;
  }
  const wanted = baseFee + transaction.maxPriorityFeePerGas;
  if (wanted < transaction.maxFeePerGas) {
    return wanted;
  }
  return transaction.maxFeePerGas;
};

const formatSigned = (transaction: SignedTransaction): RpcTransaction => {
  const { signature } = transaction;
  const yParity = formatQuantity(signature.yParity);
  const signed = {
    nonce: formatQuantity(transaction.nonce),
    ...(transaction.chainId === undefined ? {} : { chainId: formatQuantity(transaction.chainId) }),
    v: transaction.type === 0 ? formatQuantity(transaction.v) : yParity,
    r: formatQuantity(signature.r),
    s: formatQuantity(signature.s),
  };
  if (transaction.type === 0) {
    return signed;
  }
  return { ...signed, yParity, accessList: transaction.accessList, ...formatFees(transaction) };
};

const formatFees = (transaction: Exclude<SignedTransaction, { type: 0 }>): RpcTransaction => {
  if (transaction.type === 1) {
    return {};
  }
  const fees = {
    maxFeePerGas: formatQuantity(transaction.maxFeePerGas),
    maxPriorityFeePerGas: formatQuantity(transaction.maxPriorityFeePerGas),
  };
  if (transaction.type === 3) {
    const { maxFeePerBlobGas, blobVersionedHashes } = transaction;
    return { ...fees, maxFeePerBlobGas: formatQuantity(maxFeePerBlobGas), blobVersionedHashes };
  }
  if (transaction.type === 2) {
    return fees;
  }
  return {
    ...fees,
    authorizationList: transaction.authorizationList.map(formatAuthorization),
  };
};

/** Formats an authorization as the field of a transaction (EIP-7702). */
export const formatAuthorization = ({ chainId, address, nonce, yParity, r, s }: Authorization) => ({
  chainId: formatQuantity(chainId),
  address,
  nonce: formatQuantity(nonce),
  yParity: formatQuantity(yParity),
  r: formatQuantity(r),
  s: formatQuantity(s),
});
