/** The giver of values that are on no node's word alone: of a header or an execution. They are never forgotten with a node. */
export const NO_NODE = 0;
/** The giver of a single value that is no longer known. */
export const FORGOTTEN = 1;
/** Numbers have 24 bits. */
const MAX_NUMBER = 0xff_ffff;

/**
 * Knows who gave the values. Names the givers of single values by small numbers. A giver is forgotten at once: its number is not used
 * any more, and no value is searched. Carriers are the nodes on whose word alone write sets are that carried values to later blocks.
 */
export class ValueGivers {
  readonly #numbers = new Map<string | undefined, number>();
  readonly #names = new Map<number, string | undefined>();
  readonly #forgotten = new Set<number>([FORGOTTEN]);
  #newest = FORGOTTEN;
  readonly #carriers = new Set<string | undefined>();
  /** By the number of the block, of the newest write sets. */
  readonly #carriersOfBlocks = new Map<bigint, string | undefined>();

  /** The carriers since the values began. Undefined among them: a source that needs no trust. */
  get carriers(): ReadonlySet<string | undefined> {
    return this.#carriers;
  }

  /** Adds carriers of write sets that are not followed any more. */
  addCarriers(nodes: readonly (string | undefined)[]): void {
    for (const node of nodes) {
      this.#carriers.add(node);
    }
  }

  /** Adds the carrier of the write set of a block. Those of this number of blocks are known. */
  addBlock(number: bigint, node: string | undefined, maxBlocks: number): void {
    this.#carriers.add(node);
    this.#carriersOfBlocks.set(number, node);
    for (const old of [...this.#carriersOfBlocks.keys()].slice(0, -maxBlocks)) {
      this.#carriersOfBlocks.delete(old);
    }
  }

  carrierOf(number: bigint): string | undefined {
    return this.#carriersOfBlocks.get(number);
  }

  /** Returns the carriers of the write sets of these blocks. */
  carriersOf(above: bigint, upTo: bigint): readonly string[] {
    const nodes = [...this.#carriersOfBlocks].flatMap(([number, node]) =>
      number > above && number <= upTo && node !== undefined ? [node] : [],
    );
    return [...new Set(nodes)];
  }

  /** Called when all values of followed blocks are forgotten. */
  clearCarriers(): void {
    this.#carriers.clear();
    this.#carriersOfBlocks.clear();
  }

  /** Returns the number of a node. `undefined` is a node whose name is not known. */
  numberOf(node: string | undefined): number {
    const known = this.#numbers.get(node);
    if (known !== undefined) {
      return known;
    }
    // A number is used up when its node is forgotten. That needs a wrong value each time.
    this.#newest = Math.min(this.#newest + 1, MAX_NUMBER);
    this.#numbers.set(node, this.#newest);
    this.#names.set(this.#newest, node);
    return this.#newest;
  }

  nameOf(number: number): string | undefined {
    return this.#names.get(number);
  }

  /** Forgets the values of a node, and those of nodes whose names are not known. */
  forget(node: string): void {
    for (const each of [node, undefined]) {
      const number = this.#numbers.get(each);
      if (number !== undefined) {
        this.#numbers.delete(each);
        this.#names.delete(number);
        this.#forgotten.add(number);
      }
    }
  }

  isForgotten(number: number): boolean {
    return number !== NO_NODE && this.#forgotten.has(number);
  }
}
