import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { LogQuery } from "../ethereum/logFilter.ts";
import { asText, formatJson } from "../json/jsonBytes.ts";
import { readWhole } from "../jsonrpc/response.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { formatList, joinLogs } from "../logs/mergeLogs.ts";
import { scanLogs } from "../logs/scanLogs.ts";
import type { SplitLogs } from "../logs/splitLogs.ts";
import {
  BlocksBelow,
  type BlocksReader,
  canonicalBlocks,
  type FilterChain,
  type FilterStep,
  filterStep,
  unknownBlock,
  withAddedFrom,
} from "./filterChain.ts";
import {
  type FilterAdvance,
  type FilterCursor,
  type FilterStore,
  finalizedNumber,
  type ReportedBlock,
} from "./filterStore.ts";

/** A filter, the store that has it, and its state at the start of a poll. */
export interface StoredFilter {
  readonly id: string;
  readonly store: FilterStore;
  readonly cursor: FilterCursor;
}

/** The result of one poll. */
interface FilterChange {
  readonly response: RpcResponse;
  /** The step to store. `undefined` if there is no new block. */
  readonly advance: FilterAdvance | undefined;
}

interface ReadLogs {
  readonly response: RpcResponse;
  /** The logs of the added blocks, in the form of `joinLogs`. */
  readonly added: Uint8Array;
}

const encoder = new TextEncoder();
const NO_LOGS = new Uint8Array();

/** Throws the error of a poll that cannot read the filter's store. */
export const throwUnreadable = (cause: unknown): never => {
  throw new RpcError(CODES.INTERNAL, "the filter's state cannot be read now: poll again", {
    status: 503,
    retryAfterSeconds: 1,
    cause,
  });
};

const localResponse = (body: Uint8Array): RpcResponse => ({ body, status: { hit: "local" } });

const countOf = (range: BlockRange | undefined): number => (range ? Number(range.to - range.from) + 1 : 0);

/** Whether replaced blocks below the reported ones may have had logs. A log filter that missed many blocks does not store them. */
const hasHole = ({ stayed, gone: [first] }: FilterStep): boolean => {
  const last = stayed.at(-1);
  return last !== undefined && first !== undefined && first.number > last.number + 1n;
};

/** Limits a range of new blocks to the filter's own bounds. */
const withinBounds = (range: BlockRange | undefined, { blocks }: LogQuery): BlockRange | undefined => {
  if (range === undefined || "blockHash" in blocks) {
    return undefined;
  }
  const { fromBlock, toBlock } = blocks;
  const from = typeof fromBlock === "bigint" && fromBlock > range.from ? fromBlock : range.from;
  const to = typeof toBlock === "bigint" && toBlock < range.to ? toBlock : range.to;
  return from <= to ? { from, to } : undefined;
};

/** Hides the canonical block at a number, so that logs of the replaced block at that number can be read by hash. */
const withoutBlock = ({ number }: BlockId, heads: Heads): Heads => ({
  latest: heads.latest,
  isAgreed: heads.isAgreed,
  safe: heads.safe,
  finalized: heads.finalized,
  oldest: heads.oldest,
  at: (at) => (at === number ? undefined : heads.at(at)),
  header: (at) => (at === number ? undefined : heads.header(at)),
});

/** Reads a filter's logs of one block by its hash. */
const readBlockLogs = async (logs: Pick<SplitLogs, "request">, query: LogQuery, block: BlockId, context: Context) => {
  const view = { heads: withoutBlock(block, context.view.heads) };
  return readFilterLogs(await logs.request(query.filter, { blockHash: block.hash }, context.with({ view })));
};

/** Returns the parent's hash of a block of any branch, or undefined if no node has the block. */
type ParentHashReader = (hash: Hash, context: Context) => Promise<Hash | undefined>;

/** The reads of a filter's poll besides those of logs. */
export interface FilterReads {
  readonly parentHashOf: ParentHashReader;
  /** Reads blocks that the block ring does not have. */
  readonly blocksBelow: BlocksReader;
}

/** A filter that is older than the block ring has few reported blocks. A reorganisation may go this far below them. */
const MAX_BLOCKS_BELOW = 64;

/** Reads the changes of polled filters. */
export class FilterChanges {
  readonly #logs: Pick<SplitLogs, "request">;
  readonly #reads: FilterReads;
  readonly #below: BlocksBelow;

  constructor(logs: Pick<SplitLogs, "request">, reads: FilterReads) {
    this.#logs = logs;
    this.#reads = reads;
    this.#below = new BlocksBelow(reads.blocksBelow);
  }

  /**
   * Reads the changes that a filter has not reported yet. Returns `undefined` if another replica answered a poll in the meantime,
   * and `incomplete` if it is not known which blocks the filter has missed.
   */
  async read(filter: StoredFilter, context: Context): Promise<FilterChange | "incomplete" | undefined> {
    const { id, store, cursor } = filter;
    const { query, last, version } = cursor;
    const { heads } = context.view;
    // Blocks below a canonical block are canonical too.
    const isCanonical = last !== undefined && heads.at(last.number)?.hash === last.hash;
    const reported = isCanonical ? [last] : await store.reported(id, version).catch(throwUnreadable);
    if (reported === undefined) {
      return undefined;
    }
    const chain = await this.#chainOf(reported, query, context);
    if (chain === undefined) {
      return "incomplete";
    }
    const step = await this.#withBlocksBelow(filterStep(reported, chain), chain, context);
    const blocks = step?.added ? canonicalBlocks(step.added, chain) : [];
    if (step === undefined || hasHole(step) || (query === undefined && blocks.length < countOf(step.added))) {
      return "incomplete";
    }
    const { response, added } = query
      ? await this.#readLogs(query, step, context)
      : { response: localResponse(formatJson(blocks.map(({ hash }) => hash))), added: NO_LOGS };
    if (step.gone.length === 0 && blocks.length === 0) {
      return { response, advance: undefined };
    }
    const advance = {
      from: version,
      stayed: isCanonical ? undefined : step.stayed.length,
      added: withRemovableLogs(blocks, added, finalizedNumber(heads)),
      finalized: finalizedNumber(heads),
    };
    return { response, advance };
  }

  /**
   * Returns the view's chain, with the blocks below the ring that decide about the reported ones. A block ring that began again
   * lacks them. If they are too many, the result is undefined. But a log filter then needs its last block alone: logs are read
   * for any range.
   */
  async #chainOf(
    reported: readonly BlockId[],
    query: LogQuery | undefined,
    context: Context,
  ): Promise<FilterChain | undefined> {
    const { heads } = context.view;
    const unknown = unknownBlock(reported, heads);
    if (unknown === undefined) {
      return heads;
    }
    const { number, hash } = unknown;
    const chain = await this.#below.extend(heads, number, context);
    if (chain !== undefined) {
      return unknownBlock(reported, chain) ? this.#below.extend(chain, reported[0]?.number ?? number, context) : chain;
    }
    if (query === undefined) {
      return undefined;
    }
    const [block] = await this.#reads.blocksBelow({ from: number, to: number }, context);
    if (block === undefined) {
      throw unavailable("the last block of the last poll cannot be read now: poll again");
    }
    return block.hash === hash ? heads : undefined;
  }

  /**
   * If a reorganisation replaced all reported blocks, it may have replaced blocks below them too. Adds their successors.
   * Returns undefined if the first replaced block is not found.
   */
  async #withBlocksBelow(step: FilterStep, chain: FilterChain, context: Context): Promise<FilterStep | undefined> {
    let below = step.stayed.length === 0 ? step.gone[0] : undefined;
    if (below === undefined) {
      return step;
    }
    for (let count = 0; count < MAX_BLOCKS_BELOW && below.number > 0n; count++) {
      const number: bigint = below.number - 1n;
      const hash: Hash | undefined = await this.#reads.parentHashOf(below.hash, context);
      const canonical = chain.at(number);
      if (hash === undefined || canonical === undefined) {
        return undefined;
      }
      if (canonical.hash === hash) {
        return withAddedFrom(step, below.number, chain);
      }
      below = { number, hash };
    }
    return below.number === 0n ? withAddedFrom(step, 0n, chain) : undefined;
  }

  async #readLogs(query: LogQuery, step: FilterStep, context: Context): Promise<ReadLogs> {
    const removed = await this.#readRemoved(query, step.gone, context);
    const range = withinBounds(step.added, query);
    const response = range && (await this.#logs.request(query.filter, range, context));
    const added = response ? await readFilterLogs(response) : NO_LOGS;
    return { response: { ...(response ?? localResponse(added)), body: formatList([...removed, added]) }, added };
  }

  /** Returns the reported logs of blocks that are no longer canonical, with `removed: true`. */
  async #readRemoved(
    query: LogQuery,
    gone: readonly ReportedBlock[],
    context: Context,
  ): Promise<readonly Uint8Array[]> {
    const removed: Uint8Array[] = [];
    for (const block of gone) {
      if (block.logs === undefined) {
        continue;
      }
      const hasLogs = block.logs.length > 0;
      const logs = hasLogs ? block.logs : await readBlockLogs(this.#logs, query, block, context);
      if (logs.length > 0) {
        removed.push(markRemoved(logs));
      }
    }
    return removed;
  }
}

/** Reads the logs of a response to its end, in the form of `joinLogs`. */
const readFilterLogs = async ({ body }: RpcResponse): Promise<Uint8Array> => joinLogs(scanLogs(await readWhole(body)));

/** Adds `removed: true` to each log. Takes and returns the form of `joinLogs`. */
const markRemoved = (logs: Uint8Array): Uint8Array => {
  const parsed: readonly object[] = JSON.parse(asText(formatList([logs])));
  return encoder.encode(parsed.map((log) => `,${JSON.stringify({ ...log, removed: true })}`).join(""));
};

/** Returns the blocks with their logs. Leaves out logs that a reorganisation cannot remove. */
const withRemovableLogs = (blocks: readonly BlockId[], logs: Uint8Array, finalized: bigint): ReportedBlock[] => {
  const byHash = Map.groupBy(scanLogs(logs), ({ hash }) => hash);
  return blocks.map((block) => {
    const ofBlock = block.number > finalized ? byHash.get(block.hash) : undefined;
    return { ...block, logs: ofBlock && joinLogs(ofBlock) };
  });
};
