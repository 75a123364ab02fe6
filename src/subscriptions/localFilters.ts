import { networkOf } from "../limits/fairShares.ts";
import type { MemoryBudget, MemoryUse } from "../limits/memoryBudget.ts";
import {
  FILTER_EXPIRY_MS,
  type FilterAdvance,
  type FilterCursor,
  type FilterStore,
  formatQuery,
  MAX_FILTER_BLOCKS,
  MAX_FILTER_BYTES,
  type NewFilter,
  type ReportedBlock,
  weightOfQuery,
} from "./filterStore.ts";

export interface LocalFiltersOptions {
  readonly maxPerClient: number;
  readonly maxBytesPerClient: number;
  /** Counts queries, blocks and logs of filters. Default: they are not counted. */
  readonly memory?: MemoryBudget | undefined;
  readonly maxFilters?: number;
  readonly expiryMs?: number;
  readonly nowMs?: () => number;
}

interface Filter extends Pick<NewFilter, "clientId" | "query"> {
  readonly version: number;
  /** Bytes that count towards the limit of the client. */
  readonly weight: number;
  readonly blocks: readonly ReportedBlock[];
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

  add({ clientId, weight }: Pick<Filter, "clientId" | "weight">, by: 1 | -1): void {
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

const NO_ROOM = new Uint8Array();

/** Returns the blocks without the logs for which there is no room. */
const withinBytes = (blocks: readonly ReportedBlock[], maxBytes: number): ReportedBlock[] => {
  let bytes = 0;
  return blocks.map((block) => {
    const { length } = block.logs ?? NO_ROOM;
    if (bytes + length > maxBytes) {
      return { ...block, logs: NO_ROOM };
    }
    bytes += length;
    return block;
  });
};

/** Returns the filter after a poll. Evicts blocks that no reorganisation can remove. */
const advanceFilter = (filter: Filter, { stayed, added, finalized }: FilterAdvance): Filter => {
  const blocks = [...filter.blocks.slice(0, stayed), ...added]
    .filter(({ number }, at, { length }) => number > finalized || at === length - 1)
    .slice(-MAX_FILTER_BLOCKS);
  return { ...filter, version: filter.version + 1, blocks: withinBytes(blocks, MAX_FILTER_BYTES) };
};

/** Objects of a filter and of its blocks in memory. */
const FILTER_BYTES = 1_024;
const BLOCK_BYTES = 256;

/** Bytes in memory. A parsed query is larger than its text. */
const heldBytes = ({ query, weight, blocks }: Pick<Filter, "query" | "weight" | "blocks">): number =>
  FILTER_BYTES +
  (query === undefined ? 0 : 2 * (weight - MAX_FILTER_BYTES)) +
  blocks.reduce((sum, { logs }) => sum + BLOCK_BYTES + (logs?.length ?? 0), 0);

/** Stores filters in this process. Another replica does not have them. */
export class LocalFilters implements FilterStore {
  readonly #options: LocalFiltersOptions;
  readonly #nowMs: () => number;
  /** In the order of their expiry. */
  readonly #filters = new Map<string, Filter>();
  readonly #counts = new FilterCounts();

  constructor(options: LocalFiltersOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? Date.now;
  }

  async add(id: string, { clientId, query, blocks }: NewFilter): Promise<boolean> {
    const { maxPerClient, maxBytesPerClient, maxFilters = MAX_FILTERS, memory } = this.#options;
    this.#find(id);
    const own = this.#counts.of(clientId);
    const weight = weightOfQuery(formatQuery(query));
    if (own.count >= maxPerClient || own.weight + weight > maxBytesPerClient) {
      return false;
    }
    const use = memory?.open("filters", clientId);
    const filter = { clientId, query, blocks, weight, version: 0, expiresAtMs: 0, use };
    if (use?.trySet(heldBytes(filter)) === false) {
      return false;
    }
    if (this.#filters.size >= maxFilters && !this.#evictFor(clientId)) {
      use?.end();
      return false;
    }
    this.#counts.add(filter, 1);
    this.#store(id, filter);
    return true;
  }

  async read(id: string): Promise<FilterCursor | undefined> {
    const filter = this.#find(id);
    if (filter === undefined) {
      return undefined;
    }
    this.#store(id, filter);
    return { query: filter.query, version: String(filter.version), last: filter.blocks.at(-1) };
  }

  async reported(id: string, version: string): Promise<readonly ReportedBlock[] | undefined> {
    const filter = this.#find(id);
    return String(filter?.version) === version ? filter?.blocks : undefined;
  }

  async advance(id: string, advance: FilterAdvance): Promise<boolean> {
    const filter = this.#find(id);
    if (filter === undefined || String(filter.version) !== advance.from) {
      return false;
    }
    const advanced = advanceFilter(filter, advance);
    const hasRoom = filter.use?.trySet(heldBytes(advanced)) !== false;
    this.#store(id, hasRoom ? advanced : { ...advanced, blocks: withinBytes(advanced.blocks, 0) });
    return true;
  }

  async remove(id: string): Promise<boolean> {
    return this.#remove(id);
  }

  /** Evicts expired filters, then returns the filter with this id. */
  #find(id: string): Filter | undefined {
    const atMs = this.#nowMs();
    for (const [each, { expiresAtMs }] of this.#filters) {
      if (expiresAtMs > atMs) {
        break;
      }
      this.#remove(each);
    }
    return this.#filters.get(id);
  }

  #store(id: string, filter: Filter): void {
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
        : this.#filters.entries().find(([, filter]) => networkOf(filter.clientId) === network);
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
