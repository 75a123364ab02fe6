import { randomBytes } from "node:crypto";
import type { Context } from "../core/context.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { Hex } from "../ethereum/hex.ts";
import type { LogQuery } from "../ethereum/logFilter.ts";
import { CODES, RpcError, unavailable } from "../jsonrpc/rpcError.ts";
import { FilterChanges, type FilterReads } from "./filterChanges.ts";
import type { Filter, FilterStore } from "./filterStore.ts";
import { createKeyedQueue } from "./serialQueue.ts";

export interface FiltersOptions extends FilterReads {
  /** The filters of this process. */
  readonly local: FilterStore;
  /** The filters of all replicas that share a Redis. While it fails, new filters are local. */
  readonly shared?: FilterStore | undefined;
  /** Eight hex digits, the first not zero. Ids begin with them, so that they show which replica created the filter. */
  readonly replica?: string;
  /** Called if a new filter is local because the shared store failed. */
  readonly onLocal?: (error: unknown) => void;
}

/** A poll is repeated this often if another replica answers a poll at the same time. */
const MAX_ATTEMPTS = 5;

/** A longer text is no id. */
const MAX_ID_LENGTH = 66;

const isId = (id: unknown): id is string => typeof id === "string" && id.length <= MAX_ID_LENGTH;

const notFound = (): RpcError => new RpcError(CODES.SERVER, "filter not found");

const throwTooMany = (): never => {
  throw unavailable("Too many filters");
};

const createReplica = (): string => (0x10000000 + (randomBytes(4).readUInt32BE() % 0xf0000000)).toString(16);

/** Throws the error of a poll that cannot read the filter's store. */
const throwUnreadable = (cause: unknown): never => {
  throw new RpcError(CODES.INTERNAL, "the filter's state cannot be read now: poll again", {
    status: 503,
    retryAfterSeconds: 1,
    cause,
  });
};

/** A filter, and the store that has it. */
interface StoredFilter {
  readonly id: string;
  readonly store: FilterStore;
  readonly filter: Filter;
}

/** The filters of one chain that clients poll. */
export class PolledFilters {
  readonly #options: FiltersOptions;
  readonly #replica: string;
  readonly #changes: FilterChanges;
  /** Polls of one filter run one at a time, because each starts at the end of the previous one. */
  readonly #inOrder = createKeyedQueue();

  constructor(options: FiltersOptions) {
    this.#options = options;
    this.#replica = options.replica ?? createReplica();
    this.#changes = new FilterChanges(options);
  }

  newLogFilter(query: LogQuery, context: Context): Promise<Hex> {
    return this.#add(query, context);
  }

  newBlockFilter(context: Context): Promise<Hex> {
    return this.#add(undefined, context);
  }

  /**
   * Returns the changes since the last poll. Logs of blocks that are no longer canonical are returned again with
   * `removed: true`. Throws RpcError for an unknown filter, or if its state cannot be read now. A filter whose changes cannot be
   * complete is removed, and is unknown then.
   */
  async changes(id: unknown, context: Context): Promise<RpcResponse> {
    if (!isId(id)) {
      throw notFound();
    }
    return this.#inOrder(id.toLowerCase(), () => this.#poll(id, context));
  }

  /** Returns the query of a log filter. Throws RpcError for any other id. */
  async query(id: unknown): Promise<LogQuery> {
    const { query } = (await this.#find(id)).filter;
    if (query === undefined) {
      throw notFound();
    }
    return query;
  }

  /** Returns whether the filter existed. */
  async uninstall(id: unknown): Promise<boolean> {
    if (!isId(id)) {
      return false;
    }
    const { local, shared } = this.#options;
    const key = id.toLowerCase();
    return (await local.remove(key)) || ((await shared?.remove(key).catch(throwUnreadable)) ?? false);
  }

  async #add(query: LogQuery | undefined, context: Context): Promise<Hex> {
    const { local, shared, onLocal } = this.#options;
    const id = this.#createId();
    const filter = this.#changes.begin(query, context);
    const isShared = await shared?.add(id, filter).catch((error: unknown) => {
      onLocal?.(error);
      return undefined;
    });
    if (isShared !== undefined) {
      return isShared ? id : throwTooMany();
    }
    // Redis may still create the shared filter. With the same id, two filters would report each event.
    const localId = this.#createId();
    return (await local.add(localId, filter)) ? localId : throwTooMany();
  }

  #createId(): Hex {
    return `0x${this.#replica}${randomBytes(12).toString("hex")}`;
  }

  async #find(id: unknown): Promise<StoredFilter> {
    if (!isId(id)) {
      throw notFound();
    }
    const { local, shared } = this.#options;
    const key = id.toLowerCase();
    for (const store of shared === undefined ? [local] : [local, shared]) {
      const filter = await store.read(key).catch(throwUnreadable);
      if (filter !== undefined) {
        return { id: key, store, filter };
      }
    }
    throw notFound();
  }

  async #poll(id: string, context: Context): Promise<RpcResponse> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const { id: key, store, filter } = await this.#find(id);
      const change = await this.#changes.read(filter, context);
      if (change === undefined) {
        await store.remove(key).catch(throwUnreadable);
        throw notFound();
      }
      const { response, next } = change;
      if (next === undefined || (await store.replace(key, filter, next).catch(throwUnreadable))) {
        return response;
      }
    }
    throw unavailable("the filter is polled through other replicas at the same time: poll again");
  }
}
