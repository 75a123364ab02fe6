/** `0x` and 32 bytes. */
const HASH_LENGTH = 66;

/** The block hash of adjacent logs inside JSON text. It becomes a string when it is read for the first time. */
export class BlockHash {
  readonly #text: Buffer;
  readonly #at: number;
  #value: string | undefined;

  /** The hash begins at `at`. */
  constructor(text: Buffer, at: number) {
    this.#text = text;
    this.#at = at;
  }

  get value(): string {
    this.#value ??= this.#text.toString("latin1", this.#at, this.#at + HASH_LENGTH);
    return this.#value;
  }

  /** Whether the same text has an equal hash at `at`. */
  isAt(at: number): boolean {
    for (let index = HASH_LENGTH - 1; index >= 0; index--) {
      if (this.#text[at + index] !== this.#text[this.#at + index]) {
        return false;
      }
    }
    return true;
  }
}
