import { type Address, formatData, formatQuantity } from "../ethereum/hex.ts";
import { createdAddress } from "../ethereum/receipt.ts";
import type { PlainCall } from "../evm/reads/stateCalls.ts";
import type { Prepared } from "./executeTransactions.ts";

export const senderOf = (prepared: Prepared): Address =>
  "sender" in prepared ? prepared.sender : prepared.transaction.from;

/** Returns the address of the contract that a signed transaction creates. A run on guesses cannot know the sender's nonce. */
export const createdBy = (prepared: Prepared): Address | undefined =>
  "sender" in prepared && prepared.transaction.to === null
    ? createdAddress(prepared.sender, prepared.transaction.nonce)
    : undefined;

/** Formats a transaction as a call object without a gas price, so that nodes do not check the balance for gas. */
export const callOfPrepared = (prepared: Prepared): PlainCall => {
  const { transaction } = prepared;
  const { to, value, input, gas } = transaction;
  return {
    from: senderOf(prepared),
    ...(to === null ? {} : { to }),
    gas: formatQuantity(gas),
    value: formatQuantity(value),
    data: formatData(input),
    ...("authorizationList" in transaction ? { authorizationList: transaction.authorizationList } : {}),
  };
};
