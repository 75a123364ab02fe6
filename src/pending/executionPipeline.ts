import type { BlockId } from "../core/heads.ts";
import type { PendingEnvironment } from "../core/view.ts";
import { ZERO_HASH } from "../ethereum/hex.ts";
import type { Flashblock } from "../feed/message.ts";
import type { BlockMessages } from "../feed/sequenceState.ts";
import { applyFlashblock, type ExtraBlockFields, type PendingChain } from "./applyFlashblock.ts";
import { decodeOnly } from "./decode.ts";
import type { Execution, Executor, Work } from "./execution.ts";

export interface ExecutionPipelineOptions {
  readonly executor: Executor;
  /** If the execution of this message takes longer, it and all that follow it are shown without their state. */
  readonly lateAfterMs: (message: Flashblock) => number;
  /** The chain changed: an execution came, or was given up waiting for. */
  readonly onChange: () => void;
  readonly onExecuted: (
    execution: Execution,
    message: { readonly number: bigint; readonly index: number },
    durationMs: number,
  ) => void;
}

/** Messages in order, each executed on the one before. */
export interface ExecutionPipeline {
  /** The blocks above the base as the feed has them now. What is new is executed; what is no longer there is forgotten. */
  follow(blocks: readonly BlockMessages[]): void;
  /**
   * The base is another block. `isExecuted`: it is what was executed here up to the last message of that number,
   * so what was executed above it stands, and its state need not be fetched again.
   */
  rebase(base: BlockId, isExecuted: boolean, alsoShown: ExtraBlockFields): void;
  /** An execution of that block, or of one below it, is still awaited. */
  awaits(number: bigint): boolean;
  /** All messages up to the first whose execution is still awaited. */
  chain(): PendingChain;
  close(): void;
}

/** Where a message is late by now, those after it are not waited for any longer than this. */
const BEHIND_MS = 100;

/** Until the first head. */
const NO_BASE: BlockId = { number: 0n, hash: ZERO_HASH };

interface Wanted {
  readonly block: BlockMessages;
  readonly message: Flashblock;
}

interface Link {
  readonly id: number;
  readonly message: Flashblock;
  /** As it was when the message came. */
  readonly block: BlockMessages;
  readonly number: bigint;
  /** When it was given to the executor. */
  readonly base: BlockId;
  execution: Execution | undefined;
  timer: NodeJS.Timeout | undefined;
}

const environmentOf = (block: BlockMessages): PendingEnvironment | undefined => {
  const base = block.messages[0]?.base;
  if (!base) return undefined;
  const { blockNumber: number, ...rest } = base;
  return { number, ...rest };
};

const workOf = (
  id: number,
  before: number | undefined,
  block: BlockMessages,
  message: Flashblock,
): Work | undefined => {
  const environment = environmentOf(block);
  if (!environment) return undefined;
  const { transactions, gasUsed, logsBloom, receiptsRoot, postExecTransaction } = message.diff;
  const told = { gasUsed, logsBloom, receiptsRoot };
  return {
    id,
    before,
    environment,
    index: message.index,
    transactions,
    accessList: message.accessList,
    hasPostExec: postExecTransaction !== undefined,
    told,
  };
};

export const createExecutionPipeline = (options: ExecutionPipelineOptions): ExecutionPipeline => {
  const { executor, lateAfterMs, onChange, onExecuted } = options;
  let links: Link[] = [];
  let base = NO_BASE;
  let nextId = 1;
  let wanted: readonly Wanted[] = [];
  /** Folded so far: `chain` is of the first `folded` links. */
  let folded = 0;
  let chain: PendingChain = { base, alsoShown: {}, blocks: [] };

  const refold = (): void => {
    folded = 0;
    chain = { ...chain, base, blocks: [] };
  };

  const settle = (link: Link, execution: Execution): void => {
    clearTimeout(link.timer);
    link.timer = undefined;
    // It was shown without its state, and now has it.
    if (link.execution) refold();
    link.execution = execution;
  };

  const giveUp = (link: Link, unverified: "late" | "failed"): void => {
    const { message, block } = link;
    const all = block.messages.slice(0, message.index + 1).flatMap(({ diff }) => diff.transactions);
    settle(link, decodeOnly(all, message.diff.transactions, unverified));
  };

  /** Those that follow wait for this one, so they are late too. */
  const giveUpFrom = (late: Link): void => {
    for (const link of links.slice(links.indexOf(late))) if (!link.execution) giveUp(link, "late");
    onChange();
  };

  const deadlineMs = (message: Flashblock): number => {
    const isBehind = links.some(({ execution }) => execution?.unverified === "late");
    const afterMs = lateAfterMs(message);
    return isBehind ? Math.min(afterMs, BEHIND_MS) : afterMs;
  };

  const add = (block: BlockMessages, message: Flashblock): void => {
    const id = nextId++;
    const work = workOf(id, links.at(-1)?.id, block, message);
    if (!work) return;
    const link: Link = { id, message, block, number: block.number, base, execution: undefined, timer: undefined };
    link.timer = setTimeout(() => giveUpFrom(link), deadlineMs(message));
    links.push(link);
    const startedMs = performance.now();
    executor.execute(work).then(
      (execution) => {
        if (!links.includes(link)) return;
        onExecuted(execution, { number: link.number, index: message.index }, performance.now() - startedMs);
        if (execution.unverified && link.base.hash !== base.hash) {
          retryFrom(link);
          return;
        }
        settle(link, execution);
        onChange();
      },
      () => {
        if (!links.includes(link) || link.execution) return;
        giveUp(link, "failed");
        onChange();
      },
    );
  };

  const cut = (count: number): void => {
    for (const link of links.slice(count)) clearTimeout(link.timer);
    links = links.slice(0, count);
    if (folded > count) refold();
  };

  const followWanted = (): void => {
    const changed = wanted.findIndex(({ message }, position) => links[position]?.message !== message);
    const kept = changed < 0 ? wanted.length : changed;
    cut(kept);
    for (const { block, message } of wanted.slice(kept)) add(block, message);
  };

  /** It failed on another base: it is executed again on this one, with all that follows. */
  const retryFrom = (link: Link): void => {
    cut(links.indexOf(link));
    followWanted();
    onChange();
  };

  return {
    follow: (blocks) => {
      wanted = blocks.flatMap((block) => block.messages.map((message) => ({ block, message })));
      followWanted();
    },
    rebase: (next, isExecuted, alsoShown) => {
      base = next;
      chain = { base, alsoShown, blocks: [] };
      const passed = links.findLast(({ number }) => number <= next.number);
      const through = isExecuted ? passed?.id : undefined;
      for (const link of links) if (through === undefined || link.id <= through) clearTimeout(link.timer);
      links = through === undefined ? [] : links.filter(({ id }) => id > through);
      wanted = wanted.filter(({ message }) => links.some((link) => link.message === message));
      const failed = links.findIndex(({ execution }) => execution?.unverified && execution.unverified !== "late");
      if (failed >= 0) cut(failed);
      executor.rebase(next, through);
      refold();
    },
    awaits: (number) => links.some((link) => link.number <= number && !link.execution),
    chain: () => {
      for (const link of links.slice(folded)) {
        if (!link.execution) break;
        chain = applyFlashblock(chain, link.message, link.execution);
        folded++;
      }
      return chain;
    },
    close: () => cut(0),
  };
};
