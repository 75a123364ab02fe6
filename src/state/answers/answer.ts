import type { BlockId, HeaderFields, Heads } from "../../core/heads.ts";
import type { BlockValues } from "../blockValues.ts";
import type { AnswerReads } from "./answerReads.ts";
import { areUnchanged } from "./unchangedReads.ts";

/** The bytes that a node returned, with all that they depend on. */
export interface Answer {
  readonly body: Uint8Array;
  /** The block after whose state the node answered. */
  readonly block: BlockId;
  readonly reads: AnswerReads;
  readonly header: AnswerHeader;
  /** Of the state follower. An answer of an earlier generation may be of a state that changed without a block. */
  readonly generation: number;
  /** The name of the node that answered, or answered an earlier call of this text. */
  readonly node: string;
  /** The call can be executed again at a later block. */
  readonly isRepeatable: boolean;
}

/** The header fields of a block on which answers may depend besides the block's opcodes. */
export interface AnswerHeader {
  readonly feeRecipient: unknown;
  readonly gasLimit: unknown;
}

export const answerHeader = (header: HeaderFields | undefined): AnswerHeader | undefined =>
  header && { feeRecipient: header.miner, gasLimit: header.gasLimit };

/** `unknown`: the writes of the block, or those of a block below it, are not known, or their source is on probation. */
export type Validity = "valid" | "ended" | "unknown";

/** A gas limit is the start of an estimate. Two blocks with the same limit give the same start. */
const hasSameOpcodes = ({ reads: { blockOpcodes }, header }: Answer, other: AnswerHeader): boolean => {
  const onlyGasLimit = [...blockOpcodes].every((opcode) => opcode === "GASLIMIT");
  return blockOpcodes.size === 0 || (onlyGasLimit && header.gasLimit === other.gasLimit);
};

/** The price of an access depends on whether the account is the fee recipient (EIP-3651). */
const hasSameWarmAccount = ({ reads: { addresses }, header }: Answer, { feeRecipient }: AnswerHeader): boolean =>
  header.feeRecipient === feeRecipient ||
  ![header.feeRecipient, feeRecipient].some((address) => addresses.has(String(address).toLowerCase() as `0x${string}`));

/** Decides whether an answer is that of a later block too. */
export const validityAt = (
  answer: Answer,
  block: BlockId,
  values: Pick<BlockValues, "get" | "isTrusted" | "isApplied" | "isWrittenSince">,
  heads: Pick<Heads, "header">,
): Validity => {
  if (block.hash === answer.block.hash) {
    return "valid";
  }
  if (!values.isTrusted) {
    return "unknown";
  }
  if (block.number <= answer.block.number || !values.isApplied(answer.block)) {
    return "ended";
  }
  const header = answerHeader(heads.header(block.number));
  if (header === undefined || !values.isApplied(block)) {
    return "unknown";
  }
  const isSame = hasSameOpcodes(answer, header) && hasSameWarmAccount(answer, header);
  return isSame && areUnchanged(answer.reads, values, answer.block, block) ? "valid" : "ended";
};
