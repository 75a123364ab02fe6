import { type Data, parseData } from "../../ethereum/hex.ts";
import { parseTransaction } from "../../ethereum/parseTransaction.ts";
import { DEPOSIT_TYPE, InvalidTransaction } from "../../ethereum/transaction.ts";
import { recoverSender } from "./recoverAddress.ts";
import type { Senders } from "./senderRecovery.ts";

/** The run of a thread that recovers senders. A transaction that is a deposit or invalid has none. */
export const runRecoverSenders = async (raws: readonly Data[]): Promise<Senders> =>
  raws.map((raw) => {
    try {
      const transaction = parseTransaction(parseData(raw));
      return transaction.type === DEPOSIT_TYPE ? undefined : recoverSender(transaction);
    } catch (error) {
      if (error instanceof InvalidTransaction) {
        return undefined;
      }
      throw error;
    }
  });
