import type { Context } from "../core/context.ts";
import type { BlockId, Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import { NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { smaller } from "../ethereum/bigintOrder.ts";
import type { LogQuery } from "../ethereum/logFilter.ts";
import { asText, formatJson } from "../json/jsonBytes.ts";
import { readWhole } from "../jsonrpc/response.ts";
import type { SegmentStore } from "../logs/cachedSegments.ts";
import { admitsLogs } from "../logs/completeness.ts";
import { isUnknownBlock } from "../logs/logsOfBlock.ts";
import { formatList, joinLogs } from "../logs/mergeLogs.ts";
import { scanLogs } from "../logs/scanLogs.ts";
import type { SplitLogs } from "../logs/splitLogs.ts";
import { type BlocksReader, FilterChain, unreadableBlocks } from "./filterChain.ts";
import { createNonce, type Filter } from "./filterStore.ts";
import {
  MAX_REPLACED_BLOCKS,
  type ParentHashReader,
  type Reorganisation,
  type ReplacedBlock,
  ReplacedBlocks,
} from "./replacedBlocks.ts";

/** The result of one poll. */
interface FilterChange {
  readonly response: RpcResponse;
  /** The filter after it. `undefined` if it is the same. */
  readonly next: Filter | undefined;
}

const encoder = new TextEncoder();
const NO_LOGS = new Uint8Array();

const localResponse = (body: Uint8Array): RpcResponse => ({ body, status: { hit: "local" } });

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

export interface FilterReads {
  readonly logs: Pick<SplitLogs, "request" | "keep" | "kept">;
  readonly store: SegmentStore;
  readonly parentHashOf: ParentHashReader;
  /** Reads blocks that the block ring does not have. */
  readonly blocksBelow: BlocksReader;
}

/** Reads the changes of polled filters. */
export class FilterChanges {
  readonly #reads: FilterReads;
  readonly #replaced: ReplacedBlocks;

  constructor(reads: FilterReads) {
    this.#reads = reads;
    this.#replaced = new ReplacedBlocks(reads.store, reads.parentHashOf);
  }

  /** The filter of a client that has reported nothing. */
  begin(query: LogQuery | undefined, { view: { heads }, caller: { clientId } }: Context): Filter {
    this.#replaced.remember(heads);
    const { number, hash } = heads.latest;
    return { clientId, query, cursor: { number, hash }, since: number, nonce: createNonce() };
  }

  /** Reads the changes that a filter has not reported yet. Returns `undefined` if they are not all known any more. */
  async read(filter: Filter, context: Context): Promise<FilterChange | undefined> {
    const { cursor, query, since } = filter;
    const { heads } = context.view;
    const { number: to, hash } = heads.latest;
    this.#replaced.remember(heads);
    const chain = new FilterChain(context, this.#reads.blocksBelow);
    const reorganisation = (await this.#isFarBelow(filter, context))
      ? { gone: [], fork: cursor.number }
      : await this.#replaced.find(cursor, chain, context);
    if (reorganisation === undefined) {
      return undefined;
    }
    const { fork } = reorganisation;
    if (fork === to) {
      // The view has no other blocks than those that are reported. Another replica may have reported newer ones too.
      return { response: localResponse(formatList([])), next: undefined };
    }
    const response =
      query === undefined
        ? await readHashes({ from: fork + 1n, to }, chain)
        : await this.#readLogs(query, reorganisation, since, context);
    const next = { ...filter, cursor: { number: to, hash }, since: smaller(since, fork), nonce: createNonce() };
    return response && { response, next };
  }

  /** Whether the cursor of a log filter is canonical, although too many blocks are between it and the block ring to read them. */
  async #isFarBelow({ query, cursor: { number, hash } }: Filter, context: Context): Promise<boolean> {
    if (query === undefined || number >= context.view.heads.oldest) {
      return false;
    }
    const [block] = await this.#reads.blocksBelow({ from: number, to: number }, context);
    if (block === undefined) {
      throw unreadableBlocks();
    }
    return block.hash === hash;
  }

  async #readLogs(
    query: LogQuery,
    { gone, fork }: Reorganisation,
    since: bigint,
    context: Context,
  ): Promise<RpcResponse | undefined> {
    const { heads } = context.view;
    const reported = gone.filter(({ number }) => number > since && withinBounds({ from: number, to: number }, query));
    const removed = await this.#readRemoved(query, reported, context);
    if (removed === undefined) {
      return undefined;
    }
    const range = withinBounds({ from: fork + 1n, to: heads.latest.number }, query);
    if (range === undefined) {
      return localResponse(formatList(removed));
    }
    const response = await this.#reads.logs.request(query.filter, range, context);
    const logs = await readFilterLogs(response);
    this.#keep(query, range, logs, heads);
    return { ...response, body: formatList([...removed, logs]) };
  }

  /** Caches the logs of each block that a reorganisation can replace, and that has or may have some. */
  #keep({ filter }: LogQuery, { from, to }: BlockRange, logs: Uint8Array, heads: Heads): void {
    const byHash = Map.groupBy(scanLogs(logs), ({ hash }) => hash);
    const end = to - BigInt(MAX_REPLACED_BLOCKS);
    for (let number = to; number >= from && number > end && number > (heads.finalized?.number ?? -1n); number--) {
      const block = heads.at(number);
      const ofBlock = block && byHash.get(block.hash);
      if (block !== undefined && (ofBlock !== undefined || admitsLogs(block.logsBloom, filter))) {
        this.#reads.logs.keep(filter, block, joinLogs(ofBlock ?? []));
      }
    }
  }

  /** Returns the reported logs of replaced blocks, with `removed: true`. Undefined if no cache and no node has those of a block. */
  async #readRemoved(
    query: LogQuery,
    gone: readonly ReplacedBlock[],
    context: Context,
  ): Promise<readonly Uint8Array[] | undefined> {
    const removed: Uint8Array[] = [];
    for (const block of gone) {
      const logs = await this.#logsOf(query, block, context);
      if (logs === undefined) {
        return undefined;
      }
      removed.push(logs.length > 0 ? markRemoved(logs) : NO_LOGS);
    }
    return removed;
  }

  /** Returns the logs of a replaced block. Undefined if no cache and no node has them. */
  async #logsOf({ filter }: LogQuery, block: ReplacedBlock, context: Context): Promise<Uint8Array | undefined> {
    const { hash, logsBloom } = block;
    const kept = await this.#reads.logs.kept(filter, hash);
    if (kept !== undefined || (logsBloom !== undefined && !admitsLogs(logsBloom, filter))) {
      return kept ?? NO_LOGS;
    }
    const at = context.with({ view: { heads: withoutBlock(block, context.view.heads) } });
    return this.#reads.logs.request(filter, { blockHash: hash }, at).then(readFilterLogs, throwUnlessUnknown);
  }
}

const throwUnlessUnknown = (error: unknown): undefined => {
  if (!isUnknownBlock(error) && !(error instanceof NodeError && error.kind === "missingData")) {
    throw error;
  }
};

const readHashes = async (range: BlockRange, chain: FilterChain): Promise<RpcResponse | undefined> => {
  const hashes = await chain.hashes(range);
  return hashes && localResponse(formatJson(hashes));
};

/** Reads the logs of a response to its end, in the form of `joinLogs`. */
const readFilterLogs = async ({ body }: RpcResponse): Promise<Uint8Array> => joinLogs(scanLogs(await readWhole(body)));

/** Adds `removed: true` to each log. Takes and returns the form of `joinLogs`. */
const markRemoved = (logs: Uint8Array): Uint8Array => {
  const parsed: readonly object[] = JSON.parse(asText(formatList([logs])));
  return encoder.encode(parsed.map((log) => `,${JSON.stringify({ ...log, removed: true })}`).join(""));
};
