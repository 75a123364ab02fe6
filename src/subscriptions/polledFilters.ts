import { randomBytes } from "node:crypto";
import type { BlockId, Heads } from "../core/heads.ts";
import type { BlockRange } from "../core/logRange.ts";
import type { RequestContext, RpcResponse } from "../core/rpcSource.ts";
import type { Hex } from "../ethereum/hex.ts";
import type { LogQuery } from "../ethereum/logFilter.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { formatList, joinLogs } from "../logs/mergeLogs.ts";
import { scanLogs } from "../logs/scanLogs.ts";
import type { SplitLogs } from "../logs/splitLogs.ts";
import { blocksOf, stepOf } from "./filterStep.ts";
import type { FilterAdvance, FilterCursor, FilterStore } from "./filterStore.ts";

export interface FiltersOptions {
  readonly logs: SplitLogs;
  /** The filters of this process. */
  readonly local: FilterStore;
  /** The filters of all replicas, where they share a Redis. While it fails, new filters are local. */
  readonly shared?: FilterStore | undefined;
  /** Eight hex digits, the first not zero: ids show which replica made them. */
  readonly replica?: string;
  /** A new filter is local, because the shared store failed. */
  readonly onLocal?: (error: unknown) => void;
}

/** Filters that callers poll. */
export interface Filters {
  newLogFilter(query: LogQuery, context: RequestContext): Promise<Hex>;
  newBlockFilter(context: RequestContext): Promise<Hex>;
  /** What is new since the last poll; logs of blocks that are no longer canonical come again with `removed: true`. */
  changes(id: unknown, context: RequestContext): Promise<RpcResponse>;
  /** What a filter of logs was made with. */
  query(id: unknown): Promise<LogQuery>;
  uninstall(id: unknown): Promise<boolean>;
}

interface Found {
  readonly id: string;
  readonly store: FilterStore;
  readonly cursor: FilterCursor;
}

interface Change {
  readonly answer: RpcResponse;
  /** Undefined: there is nothing new. */
  readonly advance: FilterAdvance | undefined;
}

/** Blocks below the head at its beginning that a filter knows of: where a reorganisation forks off. */
const KNOWN_BLOCKS = 64n;
/** Times that a poll begins again because another replica answered one meanwhile. */
const MAX_ATTEMPTS = 5;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const notFound = (): RpcError => new RpcError(CODES.SERVER, "filter not found");

const createReplica = (): string => (0x10000000 + (randomBytes(4).readUInt32BE() % 0xf0000000)).toString(16);

/** The logs of an answer as they are remembered. */
const readAll = async ({ body }: RpcResponse): Promise<Uint8Array> => {
  const chunks: Uint8Array[] = [];
  if (body instanceof Uint8Array) chunks.push(body);
  else for await (const chunk of body) chunks.push(chunk);
  return joinLogs(scanLogs(Buffer.concat(chunks)));
};

const markRemoved = (logs: Uint8Array): Uint8Array => {
  const parsed: readonly object[] = JSON.parse(decoder.decode(formatList([logs])));
  return encoder.encode(parsed.map((log) => `,${JSON.stringify({ ...log, removed: true })}`).join(""));
};

const local = (body: Uint8Array): RpcResponse => ({ body, status: { hit: "local" } });

/** The blocks of a step that the filter's own bounds let through. */
const within = (range: BlockRange | undefined, { blocks }: LogQuery): BlockRange | undefined => {
  if (range === undefined || "blockHash" in blocks) return undefined;
  const { fromBlock, toBlock } = blocks;
  const from = typeof fromBlock === "bigint" && fromBlock > range.from ? fromBlock : range.from;
  const to = typeof toBlock === "bigint" && toBlock < range.to ? toBlock : range.to;
  return from <= to ? { from, to } : undefined;
};

/** The view says nothing of that block's place: logs of a block that is gone are read as they were. */
const without = ({ number }: BlockId, heads: Heads): Heads => ({
  latest: heads.latest,
  safe: heads.safe,
  finalized: heads.finalized,
  oldest: heads.oldest,
  at: (at) => (at === number ? undefined : heads.at(at)),
  header: (at) => (at === number ? undefined : heads.header(at)),
});

const finalizedOf = ({ finalized }: Heads): bigint => finalized?.number ?? -1n;

/** By block, where the block may still be reorganised away. */
const logsByBlock = (logs: Uint8Array, heads: Heads): FilterAdvance["logs"] =>
  [...Map.groupBy(scanLogs(logs), ({ hash }) => hash)].flatMap(([hash, group]) => {
    const number = BigInt(group[0]?.block ?? 0);
    const block = heads.at(number);
    if (block?.hash !== hash || number <= finalizedOf(heads)) return [];
    return [{ block: { number, hash: block.hash }, logs: joinLogs(group) }];
  });

/** One after another for each filter: each poll begins where the one before ended. */
const createTurns = () => {
  const last = new Map<string, Promise<unknown>>();
  return <T>(id: string, run: () => Promise<T>): Promise<T> => {
    const turn = (last.get(id) ?? Promise.resolve()).then(run, run);
    last.set(id, turn);
    const leave = () => {
      if (last.get(id) === turn) last.delete(id);
    };
    turn.then(leave, leave);
    return turn;
  };
};

export const createFilters = (options: FiltersOptions): Filters => {
  const { shared, replica = createReplica() } = options;
  const inTurn = createTurns();

  const add = async (query: LogQuery | undefined, { view: { heads }, clientId }: RequestContext): Promise<Hex> => {
    const id: Hex = `0x${replica}${randomBytes(12).toString("hex")}`;
    const blocks = blocksOf({ from: heads.latest.number - KNOWN_BLOCKS, to: heads.latest.number }, heads);
    const filter = { clientId, query, blocks };
    const isShared = await shared?.add(id, filter).catch((error: unknown) => {
      options.onLocal?.(error);
      return undefined;
    });
    if (!(isShared ?? (await options.local.add(id, filter)))) throw unavailable("Too many filters");
    return id;
  };

  const fail = (cause: unknown): never => {
    throw new RpcError(CODES.INTERNAL, "the filter's state cannot be read now: poll again", {
      status: 503,
      retryAfterSeconds: 1,
      cause,
    });
  };

  const find = async (given: unknown): Promise<Found> => {
    if (typeof given !== "string") throw notFound();
    const id = given.toLowerCase();
    for (const store of shared === undefined ? [options.local] : [options.local, shared]) {
      const cursor = await store.read(id).catch(fail);
      if (cursor !== undefined) return { id, store, cursor };
    }
    throw notFound();
  };

  const askBlock = async (query: LogQuery, block: BlockId, context: RequestContext): Promise<Uint8Array> => {
    const view = { heads: without(block, context.view.heads) };
    return readAll(await options.logs.request(query.filter, { blockHash: block.hash }, { ...context, view }));
  };

  const goneLogs = async ({ id, store }: Found, query: LogQuery, gone: readonly BlockId[], context: RequestContext) => {
    const reported = await store.logs(id, gone).catch(fail);
    const removed: Uint8Array[] = [];
    for (const [index, block] of gone.entries()) {
      const known = reported[index];
      if (known === undefined) continue;
      const logs = known.length > 0 ? known : await askBlock(query, block, context);
      if (logs.length > 0) removed.push(markRemoved(logs));
    }
    return removed;
  };

  /** Undefined where another replica answered a poll meanwhile. */
  const changeOf = async (found: Found, context: RequestContext): Promise<Change | undefined> => {
    const { id, store, cursor } = found;
    const { query, last, version } = cursor;
    const { heads } = context.view;
    // Blocks below a canonical one are canonical too.
    const isCanonical = last !== undefined && heads.at(last.number)?.hash === last.hash;
    const reported = isCanonical ? [last] : await store.blocks(id, version).catch(fail);
    if (reported === undefined) return undefined;
    const { gone, stayed, added: range } = stepOf(reported, heads);
    const added = range ? blocksOf(range, heads) : [];
    const step = {
      from: version,
      stayed: isCanonical ? undefined : stayed.length,
      added,
      finalized: finalizedOf(heads),
    };
    const isNew = gone.length > 0 || added.length > 0;
    if (query === undefined) {
      const body = encoder.encode(JSON.stringify(added.map(({ hash }) => hash)));
      return { answer: local(body), advance: isNew ? { ...step, logs: [] } : undefined };
    }
    const removed = await goneLogs(found, query, gone, context);
    const wanted = within(range, query);
    const answer = wanted && (await options.logs.request(query.filter, wanted, context));
    const bypassCache = answer ? await readAll(answer) : new Uint8Array();
    return {
      answer: { ...(answer ?? local(bypassCache)), body: formatList([...removed, bypassCache]) },
      advance: isNew ? { ...step, logs: logsByBlock(bypassCache, heads) } : undefined,
    };
  };

  const poll = async (id: string, context: RequestContext): Promise<RpcResponse> => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const found = await find(id);
      const change = await changeOf(found, context);
      if (change === undefined) continue;
      const { answer, advance } = change;
      if (advance === undefined || (await found.store.advance(found.id, advance).catch(fail))) return answer;
    }
    throw unavailable("the filter is polled through other replicas at the same time: poll again");
  };

  return {
    newLogFilter: (query, context) => add(query, context),
    newBlockFilter: (context) => add(undefined, context),
    changes: async (id, context) => {
      if (typeof id !== "string") throw notFound();
      return inTurn(id.toLowerCase(), () => poll(id, context));
    },
    query: async (id) => {
      const { query } = (await find(id)).cursor;
      if (query === undefined) throw notFound();
      return query;
    },
    uninstall: async (id) => {
      if (typeof id !== "string") return false;
      const key = id.toLowerCase();
      return (await options.local.remove(key)) || ((await shared?.remove(key).catch(fail)) ?? false);
    },
  };
};
