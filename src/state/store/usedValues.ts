import { keyName, type StateKey } from "../stateKey.ts";

/** Uses are remembered for one to two of these periods. */
const PERIOD_MS = 60_000;
/** Keys that one generation remembers. Reads of others count as new. */
const MAX_KEYS = 100_000;
/** A client with this number of keys adds no more to a generation that is half full, so that other clients have room. */
const MAX_CLIENT_KEYS = 20_000;

/** `sameBlock`: an equal read named this block or a newer one. `repeated`: one named an older block. */
export type Repetition = "new" | "repeated" | "sameBlock";

interface Use {
  readonly key: StateKey;
  /** The client that read it first. */
  readonly client: string;
  /** The newest block that was read. */
  block: bigint;
  /** Blocks at which the key was read. */
  count: number;
}

/** The uses since one moment, by key. */
interface Generation {
  readonly uses: Map<string, Use>;
  /** The number of keys that each client added. */
  readonly clientKeys: Map<string, number>;
  readonly sinceMs: number;
}

const begin = (sinceMs: number): Generation => ({ uses: new Map(), clientKeys: new Map(), sinceMs });

/** The values that clients read lately, and those on which answers to calls depend. */
export class UsedValues {
  readonly #nowMs: () => number;
  #current = begin(Number.NEGATIVE_INFINITY);
  #previous = begin(Number.NEGATIVE_INFINITY);

  constructor(nowMs = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** The number of different keys of the last period, approximately. */
  get size(): number {
    this.#rotate();
    return Math.max(this.#current.uses.size, this.#previous.uses.size);
  }

  /** Remembers a read, and compares it with earlier ones. */
  record(key: StateKey, block: bigint, client = ""): Repetition {
    this.#rotate();
    const name = keyName(key);
    const earlier = this.#previous.uses.get(name);
    const use = this.#current.uses.get(name) ?? remember(this.#current, name, { key, client }, earlier);
    if (use === undefined) {
      return "new";
    }
    if (use.count > 0 && use.block >= block) {
      return "sameBlock";
    }
    use.block = block;
    use.count += 1;
    return use.count > 1 ? "repeated" : "new";
  }

  /** Returns the keys that were read at the most blocks, the same number of each client as long as it has more. */
  mostUsedByClient(limit: number): readonly StateKey[] {
    const sorted = this.#all().sort((a, b) => b.count - a.count);
    const byClient = [...Map.groupBy(sorted, ({ client }) => client).values()];
    const chosen: StateKey[] = [];
    for (let rank = 0; chosen.length < Math.min(limit, sorted.length); rank++) {
      chosen.push(...byClient.flatMap((uses) => uses[rank]?.key ?? []));
    }
    return chosen.slice(0, limit);
  }

  /** Returns keys at random. Each is returned once. */
  sample(limit: number, random: () => number): readonly StateKey[] {
    const uses = this.#all();
    const count = Math.min(limit, uses.length);
    for (let index = 0; index < count; index++) {
      const other = index + Math.floor(random() * (uses.length - index));
      const [one, two] = [uses[index], uses[other]];
      if (one !== undefined && two !== undefined) {
        uses[index] = two;
        uses[other] = one;
      }
    }
    return uses.slice(0, count).map(({ key }) => key);
  }

  #all(): Use[] {
    this.#rotate();
    return [...new Map([...this.#previous.uses, ...this.#current.uses]).values()];
  }

  #rotate(): void {
    const nowMs = this.#nowMs();
    const ageMs = nowMs - this.#current.sinceMs;
    if (ageMs < PERIOD_MS) {
      return;
    }
    this.#previous = ageMs < 2 * PERIOD_MS ? this.#current : begin(nowMs);
    this.#current = begin(nowMs);
  }
}

/** Adds a key to a generation if there is room for it and its client. If not, returns its use before. */
const remember = (
  { uses, clientKeys }: Generation,
  name: string,
  { key, client }: Pick<Use, "key" | "client">,
  earlier: Use | undefined,
): Use | undefined => {
  const added = clientKeys.get(client) ?? 0;
  if (uses.size >= MAX_KEYS || (added >= MAX_CLIENT_KEYS && uses.size >= MAX_KEYS / 2)) {
    return earlier;
  }
  const use = { key, client, block: earlier?.block ?? 0n, count: earlier?.count ?? 0 };
  uses.set(name, use);
  clientKeys.set(client, added + 1);
  return use;
};
