import { randomBytes } from "node:crypto";
import type { BlockId, Heads } from "../chain/heads.ts";
import type { Hash, Hex } from "../chain/hex.ts";
import type { LogFilter, LogQuery } from "../chain/logFilter.ts";
import type { BlockRange } from "../chain/logRange.ts";
import type { Answer, CallContext } from "../chain/source.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { formatList, joinLogs } from "./mergeLogs.ts";
import { scanLogs } from "./scanLogs.ts";
import type { SplitLogs } from "./splitLogs.ts";

export interface FiltersOptions {
  readonly logs: SplitLogs;
  /** A filter that nobody asks is forgotten. */
  readonly expiryMs?: number;
  readonly maxFilters?: number;
  /** Eight hex digits, the first not zero: ids tell which replica made them. */
  readonly replica?: string;
  readonly now?: () => number;
}

/** Filters that callers poll. They live in this process: another replica answers "filter not found". */
export interface Filters {
  newLogFilter(query: LogQuery, heads: Heads): Hex;
  newBlockFilter(heads: Heads): Hex;
  /** What is new since the last time; logs of blocks that are no longer canonical come again with `removed: true`. */
  changes(id: unknown, context: CallContext): Promise<Answer>;
  /** What a filter of logs was made with. */
  query(id: unknown): LogQuery;
  uninstall(id: unknown): boolean;
}

interface Filter {
  /** Undefined: a filter of blocks. */
  readonly query: LogQuery | undefined;
  /** Blocks that were told of and may still be reorganised away, oldest first; at least the last one. */
  told: readonly BlockId[];
  /** The logs that were told of, by block hash, as they were given; undefined where there was no room for them. */
  readonly logs: Map<Hash, Uint8Array | undefined>;
  expiresAtMs: number;
  /** One answer after another: each begins where the one before ended. */
  turn: Promise<unknown>;
}

const EXPIRY_MS = 300_000;
const MAX_FILTERS = 10_000;
/** Logs of one filter that are remembered for a reorganisation; those beyond are asked for by block hash. */
const MAX_REMEMBERED_BYTES = 1024 * 1024;
/** Blocks below the head at its beginning that a filter knows of: where a reorganisation forks off. */
const KNOWN_BLOCKS = 64n;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const notFound = (): RpcError => new RpcError(CODES.SERVER, "filter not found");

const createReplica = (): string => (0x10000000 + (randomBytes(4).readUInt32BE() % 0xf0000000)).toString(16);

interface Step {
  /** Told, and no longer canonical; oldest first. */
  readonly gone: readonly BlockId[];
  /** Still canonical. */
  readonly stayed: readonly BlockId[];
  readonly added: BlockRange | undefined;
}

/**
 * What a filter has to tell: how the chain that it told of differs from the view's. A block above the view's head (another
 * request had a newer view) is as good as the blocks below it.
 */
const stepOf = (told: readonly BlockId[], heads: Heads): Step => {
  const fork = told.findIndex(({ number, hash }) => (heads.at(number)?.hash ?? hash) !== hash);
  const stayed = fork === -1 ? told : told.slice(0, fork);
  const gone = fork === -1 ? [] : told.slice(fork);
  const last = stayed.at(-1)?.number ?? (gone[0] ?? heads.latest).number - 1n;
  const to = heads.latest.number;
  return { gone, stayed, added: last < to ? { from: last + 1n, to } : undefined };
};

const blocksOf = ({ from, to }: BlockRange, heads: Heads): BlockId[] => {
  const blocks: BlockId[] = [];
  for (let number = from > heads.oldest ? from : heads.oldest; number <= to; number++) {
    const block = heads.at(number);
    if (block !== undefined) blocks.push({ number, hash: block.hash });
  }
  return blocks;
};

/** The logs of an answer as they are kept. */
const readAll = async ({ body }: Answer): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = [];
  if (body instanceof Uint8Array) chunks.push(body);
  else for await (const chunk of body) chunks.push(chunk);
  return joinLogs(scanLogs(Buffer.concat(chunks)));
};

const markRemoved = (logs: Uint8Array): Uint8Array => {
  const parsed: readonly object[] = JSON.parse(decoder.decode(formatList([logs])));
  return encoder.encode(parsed.map((log) => `,${JSON.stringify({ ...log, removed: true })}`).join(""));
};

const local = (body: Uint8Array): Answer => ({ body, status: { hit: "local" } });

export const createFilters = (options: FiltersOptions): Filters => {
  const { expiryMs = EXPIRY_MS, maxFilters = MAX_FILTERS, replica = createReplica(), now = Date.now } = options;
  const filters = new Map<string, Filter>();

  const forgetExpired = () => {
    const at = now();
    for (const [id, { expiresAtMs }] of filters) if (expiresAtMs <= at) filters.delete(id);
  };

  const add = (query: LogQuery | undefined, heads: Heads): Hex => {
    forgetExpired();
    if (filters.size >= maxFilters) throw unavailable("Too many filters");
    const id: Hex = `0x${replica}${randomBytes(12).toString("hex")}`;
    const told = blocksOf({ from: heads.latest.number - KNOWN_BLOCKS, to: heads.latest.number }, heads);
    filters.set(id, { query, told, logs: new Map(), expiresAtMs: now() + expiryMs, turn: Promise.resolve() });
    return id;
  };

  const find = (id: unknown): Filter => {
    forgetExpired();
    const filter = typeof id === "string" ? filters.get(id.toLowerCase()) : undefined;
    if (filter === undefined) throw notFound();
    filter.expiresAtMs = now() + expiryMs;
    return filter;
  };

  /** What is final cannot be reorganised away: it is forgotten, but for the last block. */
  const tell = (filter: Filter, blocks: readonly BlockId[], heads: Heads) => {
    const finalized = heads.finalized?.number ?? -1n;
    filter.told = blocks.filter(({ number }, at) => number > finalized || at === blocks.length - 1);
    const remembered = new Set(filter.told.map(({ hash }) => hash));
    for (const hash of filter.logs.keys()) if (!remembered.has(hash)) filter.logs.delete(hash);
  };

  const remember = (filter: Filter, logs: Uint8Array, heads: Heads) => {
    let bytes = filter.logs.values().reduce((sum, kept) => sum + (kept?.length ?? 0), 0);
    for (const [hash, group] of Map.groupBy(scanLogs(logs), (log) => log.hash)) {
      const number = BigInt(group[0]?.block ?? 0);
      const block = heads.at(number);
      if (block?.hash !== hash || number <= (heads.finalized?.number ?? -1n)) continue;
      const kept = joinLogs(group);
      const hasRoom = bytes + kept.length <= MAX_REMEMBERED_BYTES;
      if (hasRoom) bytes += kept.length;
      filter.logs.set(block.hash, hasRoom ? kept : undefined);
    }
  };

  const goneLogs = async (filter: Filter, wanted: LogFilter, gone: readonly BlockId[], context: CallContext) => {
    const removed: Uint8Array[] = [];
    for (const { hash } of gone) {
      if (!filter.logs.has(hash)) continue;
      const logs = filter.logs.get(hash) ?? (await askBlock(wanted, hash, context));
      if (logs.length > 0) removed.push(markRemoved(logs));
    }
    return removed;
  };

  const askBlock = async (wanted: LogFilter, blockHash: Hash, context: CallContext): Promise<Uint8Array> =>
    readAll(await options.logs.request(wanted, { blockHash }, context));

  const within = (range: BlockRange | undefined, query: LogQuery): BlockRange | undefined => {
    if (range === undefined || "blockHash" in query.blocks) return undefined;
    const { fromBlock, toBlock } = query.blocks;
    const from = typeof fromBlock === "bigint" && fromBlock > range.from ? fromBlock : range.from;
    const to = typeof toBlock === "bigint" && toBlock < range.to ? toBlock : range.to;
    return from <= to ? { from, to } : undefined;
  };

  const logChanges = async (filter: Filter, query: LogQuery, context: CallContext): Promise<Answer> => {
    const { heads } = context.view;
    const { gone, stayed, added } = stepOf(filter.told, heads);
    const removed = await goneLogs(filter, query.filter, gone, context);
    const range = within(added, query);
    const answer = range && (await options.logs.request(query.filter, range, context));
    const fresh = answer ? await readAll(answer) : new Uint8Array();
    tell(filter, [...stayed, ...(added ? blocksOf(added, heads) : [])], heads);
    remember(filter, fresh, heads);
    return { ...(answer ?? local(fresh)), body: formatList([...removed, fresh]) };
  };

  const blockChanges = (filter: Filter, { heads }: CallContext["view"]): Answer => {
    const { stayed, added } = stepOf(filter.told, heads);
    const blocks = added ? blocksOf(added, heads) : [];
    tell(filter, [...stayed, ...blocks], heads);
    return local(encoder.encode(JSON.stringify(blocks.map(({ hash }) => hash))));
  };

  return {
    newLogFilter: (query, heads) => add(query, heads),
    newBlockFilter: (heads) => add(undefined, heads),

    changes: async (id, context) => {
      const filter = find(id);
      const change = async () =>
        filter.query === undefined ? blockChanges(filter, context.view) : logChanges(filter, filter.query, context);
      const turn = filter.turn.then(change, change);
      filter.turn = turn.catch(() => {});
      return turn;
    },

    query: (id) => {
      const { query } = find(id);
      if (query === undefined) throw notFound();
      return query;
    },

    uninstall: (id) => typeof id === "string" && filters.delete(id.toLowerCase()),
  };
};
