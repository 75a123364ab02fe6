import type { Context } from "../core/context.ts";
import type { BlockId } from "../core/heads.ts";
import { type Node, NodeError } from "../core/node.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import { type Hash, isData, isQuantity, parseData } from "../ethereum/hex.ts";
import { canonicalLogFilter, type LogFilter } from "../ethereum/logFilter.ts";
import { isFields } from "../json/jsonBytes.ts";
import { CODES, RpcError } from "../jsonrpc/rpcError.ts";
import { ownerOf } from "../limits/fairQueue.ts";
import { blockKey, hashFilter } from "./cachedSegments.ts";
import { admitsLogs } from "./completeness.ts";
import type { FetchedLogs, FetchLogs, FetchReceiptLogs } from "./fetchLogs.ts";
import { FetchRetries } from "./fetchRetries.ts";
import type { LogsOptions } from "./logsOptions.ts";
import { formatList, joinLogs } from "./mergeLogs.ts";
import { FetchContext, requestJson } from "./requestLogs.ts";

/** What a poll reported of a block is no answer by hash: the logs of a range are verified less than those of one block. */
const keptKey = (filter: LogFilter, hash: Hash): string =>
  `kept:${blockKey(hashFilter(canonicalLogFilter(filter)), hash)}`;

/** Returns the logs of one block by its hash. A block that no node has is an error. */
export class LogsOfBlock {
  readonly #options: Pick<LogsOptions, "nodes" | "store" | "verifier">;
  readonly #fetchLogs: FetchLogs;
  readonly #fetchReceipts: FetchReceiptLogs;

  constructor(
    options: Pick<LogsOptions, "nodes" | "store" | "verifier">,
    fetchLogs: FetchLogs,
    fetchReceipts: FetchReceiptLogs,
  ) {
    this.#options = options;
    this.#fetchLogs = fetchLogs;
    this.#fetchReceipts = fetchReceipts;
  }

  async request(hash: Hash, filter: LogFilter, context: Context): Promise<RpcResponse> {
    const { store } = this.#options;
    const filterHash = hashFilter(canonicalLogFilter(filter));
    const key = blockKey(filterHash, hash);
    const [cached] = context.bypassCache ? [] : await store.get([key], ownerOf(context.caller));
    if (cached !== undefined) {
      return { body: formatList([cached.bytes]), status: { hit: cached.from } };
    }
    const known = this.#options.verifier?.knownHeader(hash, context);
    if (known !== undefined && !admitsLogs(known.logsBloom, filter)) {
      return { body: formatList([]), status: { hit: "local" }, block: { number: known.number, hash }, grade: "proven" };
    }
    const owner = { clientId: context.caller.clientId, group: {}, signal: context.signal };
    // One block is always small enough for memory.
    const own = { owner, countBytes: () => undefined, retries: new FetchRetries(), memory: context.memory };
    const fetched = await this.#fetch(hash, filter, new FetchContext(context, own));
    const bytes = joinLogs(fetched.logs, fetched.timestamps);
    const number = fetched.logs[0]?.block;
    const stored = fetched.logs.length > 0 || fetched.verified;
    if (stored) {
      store.set(key, bytes, "byHash", number === undefined ? undefined : { number: BigInt(number), hash });
    }
    const [node] = fetched.nodes;
    return {
      body: formatList([bytes]),
      status: { fwd: context.bypassCache ? "request" : "miss", stored },
      ...(node !== undefined && { node }),
    };
  }

  /** Caches the logs of a recent block that were read as part of a range: nodes forget a block that was replaced. */
  keep(filter: LogFilter, block: BlockId, bytes: Uint8Array): void {
    this.#options.store.set(keptKey(filter, block.hash), bytes, "recent", block);
  }

  /** Returns logs that were kept, as long as the cache has them. */
  async kept(filter: LogFilter, hash: Hash): Promise<Uint8Array | undefined> {
    const [cached] = await this.#options.store.get([keptKey(filter, hash)]);
    return cached?.bytes;
  }

  async #fetch(hash: Hash, filter: LogFilter, context: FetchContext): Promise<FetchedLogs> {
    const { nodes, verifier } = this.#options;
    const ofReceipts = await this.#fetchReceipts({ hash }, filter, context);
    if (ofReceipts !== undefined) {
      return ofReceipts;
    }
    const known = verifier?.knownHeader(hash, context);
    const header = known ?? parseHeader(await verifier?.readHeader(hash, context));
    const { number, logsBloom } = header ?? (await findHeader(nodes, hash, context));
    const range = { from: number, to: number, blockHash: hash, filter, final: false };
    const fetched = await this.#fetchLogs(range, context);
    if (fetched.logs.length > 0 || !admitsLogs(logsBloom, filter)) {
      return fetched;
    }
    // The bloom admits a log. A node that has forgotten the block returns an empty list too.
    // Accept the list if a node has the block, and if it is returned twice. It is not cached.
    await findHeader(nodes, hash, context);
    return { ...(await this.#fetchLogs(range, context)), verified: false };
  }
}

const UNKNOWN_BLOCK = "unknown block";

/** Whether no node has the block whose logs were requested. */
export const isUnknownBlock = (error: unknown): boolean => error instanceof RpcError && error.message === UNKNOWN_BLOCK;

/** Reads the header from the first node that has it. Throws if no node has it. */
const findHeader = async (nodes: readonly Node[], hash: Hash, context: Context): Promise<Header> => {
  let lastError: unknown;
  for (const node of nodes.filter(({ available }) => available)) {
    try {
      const header = parseHeader(await requestJson(node, "eth_getBlockByHash", [hash, false], context));
      if (header !== undefined) {
        return header;
      }
    } catch (error) {
      if (!(error instanceof NodeError)) {
        throw error;
      }
      if (error.kind !== "missingData") {
        lastError = error;
      }
    }
  }
  // The block is unknown only if all nodes have answered.
  throw lastError ?? new RpcError(CODES.SERVER, UNKNOWN_BLOCK);
};

interface Header {
  readonly number: bigint;
  readonly logsBloom: Uint8Array;
}

const BLOOM_BYTES = 256;

const parseHeader = (block: unknown): Header | undefined => {
  if (!isFields(block) || !isQuantity(block.number)) {
    return undefined;
  }
  const logsBloom = isData(block.logsBloom) ? parseData(block.logsBloom) : undefined;
  return logsBloom?.length === BLOOM_BYTES ? { number: BigInt(block.number), logsBloom } : undefined;
};
