import { networkOf } from "../limits/fairShares.ts";
import type { MemoryBudget, MemoryUse } from "../limits/memoryBudget.ts";
import { FILTER_EXPIRY_MS, type Filter, type FilterStore, formatQuery } from "./filterStore.ts";

export interface LocalFiltersOptions {
  readonly maxPerClient: number;
  readonly maxBytesPerClient: number;
  /** Counts the bytes of filters. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
  readonly maxFilters?: number;
  readonly expiryMs?: number;
  readonly nowMs?: () => number;
}

interface LocalFilter {
  readonly filter: Filter;
  /** Bytes that count towards the limit of the client. */
  readonly weight: number;
  readonly expiresAtMs: number;
  readonly use: MemoryUse | undefined;
}

const MAX_FILTERS = 10_000;

/** The filters of one client. */
interface ClientFilters {
  count: number;
  /** Bytes that count towards the limit of the client. */
  weight: number;
}

/** Counts filters by client, and by network. */
class FilterCounts {
  readonly #clients = new Map<string, ClientFilters>();
  readonly #networks = new Map<string, number>();

  of(clientId: string): Readonly<ClientFilters> {
    return this.#clients.get(clientId) ?? { count: 0, weight: 0 };
  }

  add({ filter: { clientId }, weight }: Pick<LocalFilter, "filter" | "weight">, by: 1 | -1): void {
    const before = this.of(clientId);
    const count = before.count + by;
    if (count === 0) {
      this.#clients.delete(clientId);
    } else {
      this.#clients.set(clientId, { count, weight: before.weight + by * weight });
    }
    const network = networkOf(clientId);
    const ofNetwork = (this.#networks.get(network) ?? 0) + by;
    if (ofNetwork === 0) {
      this.#networks.delete(network);
    } else {
      this.#networks.set(network, ofNetwork);
    }
  }

  /** Returns the network with the most filters. Undefined if it has at most one filter more than the network of this client. */
  largestBeside(clientId: string): string | undefined {
    const own = (this.#networks.get(networkOf(clientId)) ?? 0) + 1;
    let largest: string | undefined;
    let most = own;
    for (const [network, count] of this.#networks) {
      if (count > most) {
        largest = network;
        most = count;
      }
    }
    return largest;
  }
}

/** Objects of a filter in memory. A parsed query is larger than its text. */
const FILTER_BYTES = 1_280;

/** Stores filters in this process. Another replica does not have them. */
export class LocalFilters implements FilterStore {
  readonly #options: LocalFiltersOptions;
  readonly #nowMs: () => number;
  /** In the order of their expiry. */
  readonly #filters = new Map<string, LocalFilter>();
  readonly #counts = new FilterCounts();

  constructor(options: LocalFiltersOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
  }

  async add(id: string, filter: Filter): Promise<boolean> {
    const { maxPerClient, maxBytesPerClient, maxFilters = MAX_FILTERS, memory } = this.#options;
    const { clientId, query } = filter;
    this.#find(id);
    const own = this.#counts.of(clientId);
    const weight = formatQuery(query).length;
    if (own.count >= maxPerClient || own.weight + weight > maxBytesPerClient) {
      return false;
    }
    const use = memory?.open("filters", clientId);
    if (use?.trySet(FILTER_BYTES + 2 * weight) === false) {
      return false;
    }
    if (this.#filters.size >= maxFilters && !this.#evictFor(clientId)) {
      use?.end();
      return false;
    }
    const added = { filter, weight, expiresAtMs: 0, use };
    this.#counts.add(added, 1);
    this.#store(id, added);
    return true;
  }

  async read(id: string): Promise<Filter | undefined> {
    const found = this.#find(id);
    if (found !== undefined) {
      this.#store(id, found);
    }
    return found?.filter;
  }

  async replace(id: string, from: Filter, to: Filter): Promise<boolean> {
    const found = this.#find(id);
    if (found?.filter.nonce !== from.nonce) {
      return false;
    }
    this.#store(id, { ...found, filter: to });
    return true;
  }

  async remove(id: string): Promise<boolean> {
    return this.#remove(id);
  }

  /** Evicts expired filters, then returns the filter with this id. */
  #find(id: string): LocalFilter | undefined {
    const atMs = this.#nowMs();
    for (const [each, { expiresAtMs }] of this.#filters) {
      if (expiresAtMs > atMs) {
        break;
      }
      this.#remove(each);
    }
    return this.#filters.get(id);
  }

  #store(id: string, filter: LocalFilter): void {
    const { expiryMs = FILTER_EXPIRY_MS } = this.#options;
    this.#filters.delete(id);
    this.#filters.set(id, { ...filter, expiresAtMs: this.#nowMs() + expiryMs });
  }

  /** Makes room for a client: removes the filter of the largest network that was not polled for the longest time. */
  #evictFor(clientId: string): boolean {
    const network = this.#counts.largestBeside(clientId);
    const oldest =
      network === undefined
        ? undefined
        : this.#filters.entries().find(([, { filter }]) => networkOf(filter.clientId) === network);
    return oldest !== undefined && this.#remove(oldest[0]);
  }

  #remove(id: string): boolean {
    const filter = this.#filters.get(id);
    if (filter === undefined) {
      return false;
    }
    filter.use?.end();
    this.#counts.add(filter, -1);
    return this.#filters.delete(id);
  }
}
