import { type Address, formatData, formatQuantity } from "../../src/ethereum/hex.ts";
import type { SignedTransaction } from "../../src/ethereum/transaction.ts";

/** Formats a transaction as a call that the node traces after the transactions that it has. */
export const formatCall = (transaction: SignedTransaction, sender: Address) => ({
  from: sender,
  ...(transaction.to === null ? {} : { to: transaction.to }),
  input: formatData(transaction.input),
  value: formatQuantity(transaction.value),
  gas: formatQuantity(transaction.gas),
  nonce: formatQuantity(transaction.nonce),
  ...feesOf(transaction),
});

const feesOf = (transaction: SignedTransaction) => {
  if (transaction.type === 0) {
    return { gasPrice: formatQuantity(transaction.gasPrice) };
  }
  const { accessList } = transaction;
  if (transaction.type === 1) {
    return { gasPrice: formatQuantity(transaction.gasPrice), accessList };
  }
  return {
    maxFeePerGas: formatQuantity(transaction.maxFeePerGas),
    maxPriorityFeePerGas: formatQuantity(transaction.maxPriorityFeePerGas),
    accessList,
    ...(transaction.type === 4
      ? {
          authorizationList: transaction.authorizationList.map((each) => ({
            chainId: formatQuantity(each.chainId),
            address: each.address,
            nonce: formatQuantity(each.nonce),
            yParity: formatQuantity(each.yParity),
            r: formatQuantity(each.r),
            s: formatQuantity(each.s),
          })),
        }
      : {}),
  };
};
