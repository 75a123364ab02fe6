/** The number of a header, and how many of the fields that forks added it has. */
export interface HeaderForm {
  readonly number: bigint;
  readonly forkFields: number;
}

/** The lowest verified header with each number of fork fields. Later headers of the chain have at least as many. */
export class ForkFields {
  readonly #from = new Map<number, bigint>();

  add({ number, forkFields }: HeaderForm): void {
    const lowest = this.#from.get(forkFields);
    if (lowest === undefined || number < lowest) {
      this.#from.set(forkFields, number);
    }
  }

  /** Whether a header has fewer fork fields than a verified header before it. */
  isLackedBy({ number, forkFields }: HeaderForm): boolean {
    return [...this.#from].some(([fields, from]) => fields > forkFields && from <= number);
  }
}
