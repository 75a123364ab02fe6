import type { BlockId } from "../core/heads.ts";
import type { Flashblock } from "../feed/flashblock.ts";
import type { BlockMessages } from "../feed/sequenceState.ts";
import type { MessageForm } from "./appliedChain.ts";
import { environmentOf } from "./applyFlashblock.ts";
import { decodeOnly, type KnownSender } from "./decode.ts";
import type { Execution, FlashblockJob } from "./execution.ts";

/** A message with its block. */
export interface FeedMessage {
  readonly block: BlockMessages;
  readonly message: Flashblock;
}

/** A message whose execution was requested. */
export interface QueuedMessage extends FeedMessage {
  readonly number: bigint;
  /** The newest execution. Undefined if the message has to be executed again. */
  job: MessageJob | undefined;
  /** Undefined while it executes for the first time. */
  form: MessageForm | undefined;
  /** A view contained the message. It keeps that form until it is executed again. */
  isShown: boolean;
  timer: NodeJS.Timeout | undefined;
}

interface MessageJob {
  readonly id: number;
  /** The base at the start of the execution. */
  readonly base: BlockId;
  /** The result, also if it is late. */
  readonly result: Promise<Execution>;
}

/** Removes the changes of an execution on another base. The message is shown without state until it is executed again. */
export const withoutChanges = ({ message, execution }: MessageForm): MessageForm => {
  const outcome = execution.outcome && { ...execution.outcome, changes: undefined };
  return { message, execution: { ...execution, outcome, unverified: "late" } };
};

/** Returns undefined if the first message of the block is missing. */
export const createJob = (
  id: number,
  before: number | undefined,
  { block, message }: FeedMessage,
): FlashblockJob | undefined => {
  const environment = environmentOf(block.messages[0]);
  if (!environment) {
    return undefined;
  }
  const { transactions, gasUsed, logsBloom, receiptsRoot, postExecTransaction } = message.diff;
  return {
    id,
    before,
    environment,
    index: message.index,
    transactions,
    accessList: message.accessList,
    hasPostExec: postExecTransaction !== undefined,
    expected: { gasUsed, logsBloom, receiptsRoot },
  };
};

/** Decodes a message that is shown without state. */
export const decodeMessage = (
  { block, message }: FeedMessage,
  unverified: "late" | "failed",
  senderOf: KnownSender | undefined,
): Execution => {
  const blockTransactions = block.messages.slice(0, message.index + 1).flatMap(({ diff }) => diff.transactions);
  return decodeOnly(blockTransactions, message.diff.transactions, unverified, senderOf);
};
