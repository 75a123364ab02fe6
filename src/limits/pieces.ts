/** What a piece of bytes costs beside its bytes: the objects of a Buffer. Measured: 130 to 235 bytes. */
export const PIECE_BYTES = 256;

const MIN_MEAN_BYTES = 512;
const FEW_PIECES = 4_096;

/** The most pieces in which this many bytes may arrive. Every network carries more than half a KiB at a time. */
export const maxPieces = (bytes: number): number => FEW_PIECES + Math.ceil(bytes / MIN_MEAN_BYTES);

/** Smaller pieces are copied into blocks. A larger one costs little beside its bytes. */
const MIN_PIECE_BYTES = 1_024;
const BLOCK_BYTES = 4 * 1_024;

const EMPTY = Buffer.alloc(0);

/** Collects the pieces of one body. They cost little more than their bytes, however small they are. */
export class Pieces {
  #bytes = 0;
  #count = 0;
  /** Kept as it is: most bodies are one piece. */
  #first: Buffer | undefined;
  #pieces: Buffer[] | undefined;
  #block = EMPTY;
  /** Where the bytes of the block begin that are not in `#pieces`. */
  #start = 0;
  #end = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether these are more pieces than the bytes can need. Each takes time, also where it takes no memory. */
  get areTooMany(): boolean {
    return this.#count > maxPieces(this.#bytes);
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    this.#count++;
    if (this.#pieces !== undefined) {
      this.#append(this.#pieces, piece);
    } else if (this.#first === undefined) {
      this.#first = piece;
    } else {
      this.#pieces = [];
      this.#append(this.#pieces, this.#first);
      this.#append(this.#pieces, piece);
    }
  }

  /** Returns all bytes, in few pieces. */
  list(): readonly Buffer[] {
    if (this.#pieces === undefined) {
      return this.#first === undefined ? [] : [this.#first];
    }
    this.#flush(this.#pieces);
    return this.#pieces;
  }

  /** Returns all bytes in one piece. */
  join(): Buffer {
    const [first = EMPTY, ...others] = this.list();
    return others.length === 0 ? first : Buffer.concat([first, ...others], this.#bytes);
  }

  clear(): void {
    this.#bytes = 0;
    this.#count = 0;
    this.#first = undefined;
    this.#pieces = undefined;
    this.#block = EMPTY;
    this.#start = 0;
    this.#end = 0;
  }

  #append(pieces: Buffer[], piece: Buffer): void {
    if (piece.length >= MIN_PIECE_BYTES) {
      this.#flush(pieces);
      pieces.push(piece);
      return;
    }
    if (this.#end + piece.length > this.#block.length) {
      this.#flush(pieces);
      this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      this.#start = 0;
      this.#end = 0;
    }
    this.#block.set(piece, this.#end);
    this.#end += piece.length;
  }

  /** Moves the bytes of the block to the pieces. The rest of the block is used on. */
  #flush(pieces: Buffer[]): void {
    if (this.#end > this.#start) {
      pieces.push(this.#block.subarray(this.#start, this.#end));
      this.#start = this.#end;
    }
  }
}
