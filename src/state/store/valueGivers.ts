/** The giver of values that are on no node's word alone: of a header or an execution. They are never forgotten with a node. */
export const NO_NODE = 0;
/** The giver of a single value that is no longer known. */
export const FORGOTTEN = 1;
/** Numbers have 24 bits. */
const MAX_NUMBER = 0xff_ffff;

/** Names the givers of values by small numbers. A giver is forgotten at once: its number is not used any more, and no value is searched. */
export class ValueGivers {
  readonly #numbers = new Map<string | undefined, number>();
  readonly #names = new Map<number, string | undefined>();
  readonly #forgotten = new Set<number>([FORGOTTEN]);
  #newest = FORGOTTEN;

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
