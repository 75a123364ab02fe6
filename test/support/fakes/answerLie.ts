import type { ChainCall } from "../servers/sealedChain.ts";
import type { Lie } from "./lyingNode.ts";

/** A wrong answer, and the call that gets it. */
export interface AnswerLie {
  readonly lie: Lie;
  readonly call: ChainCall;
  /** A call whose correct answer forebay has verified before the lie. */
  readonly before?: ChainCall;
  /** The check that fails, as the label of the metric. */
  readonly check: string;
}

export type Fields = Readonly<Record<string, unknown>>;
export type Change = (result: Fields) => unknown;

/** Changes the last hex digit of a value. */
const flipped = (value: unknown): string => {
  const text = String(value);
  return text.slice(0, -1) + (text.endsWith("1") ? "2" : "1");
};
/** Changes a field of a result. */
export const flip =
  (field: string): Change =>
  (fields) => ({ ...fields, [field]: flipped(fields[field]) });

/** Changes whether a receipt says that its transaction succeeded. */
export const flipStatus: Change = (receipt) => ({ ...receipt, status: receipt.status === "0x1" ? "0x0" : "0x1" });
