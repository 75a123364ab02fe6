import { DEPOSIT_TYPE } from "../ethereum/transaction.ts";
import type { Fields } from "../json/fields.ts";
import { isAbsent, numberOf } from "./jsonFields.ts";

/** Whether a transaction or receipt object is that of a deposit. Throws MalformedField. */
export const isDeposit = ({ type }: Fields): boolean => !isAbsent(type) && numberOf(type) === BigInt(DEPOSIT_TYPE);
