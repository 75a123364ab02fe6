import { concatBytes, numberBytes } from "../../../src/ethereum/rlp.ts";

const PUSH1 = 0x60;
const MSTORE8 = 0x53;
const MSTORE = 0x52;
const JUMP = 0x56;
const JUMPI = 0x57;
const JUMPDEST = 0x5b;
const DUP1 = 0x80;
const SWAP1 = 0x90;
const SUB = 0x03;
const POP = 0x50;
const WORD_BYTES = 32;

/** Appends opcodes to a program. Jumps have two bytes. */
export class Assembler {
  readonly #parts: Uint8Array[] = [];
  #length = 0;

  bytes(): Uint8Array {
    return concatBytes(this.#parts);
  }

  op(...codes: readonly number[]): void {
    this.#add(Uint8Array.from(codes));
  }

  /** Pushes a word with as many bytes as it needs, or with `size` bytes if that is more. */
  push(value: bigint, size = 1): void {
    const bytes = numberBytes(value);
    const length = Math.max(size, bytes.length, 1);
    const padded = new Uint8Array(length + 1);
    padded[0] = PUSH1 + length - 1;
    padded.set(bytes, length + 1 - bytes.length);
    this.#add(padded);
  }

  /** Writes bytes to memory from `offset` on. */
  data(bytes: Uint8Array, offset: bigint): void {
    for (let at = 0; at < bytes.length; at += WORD_BYTES) {
      const word = new Uint8Array(WORD_BYTES);
      word.set(bytes.subarray(at, at + WORD_BYTES));
      this.#add(Uint8Array.from([PUSH1 + WORD_BYTES - 1, ...word]));
      this.push(offset + BigInt(at));
      this.op(MSTORE);
    }
    if (bytes.length === 0) {
      this.push(0n);
      this.push(offset);
      this.op(MSTORE8);
    }
  }

  /** Jumps over bytes. A conditional jump is taken. */
  jumpOver(skipped: Uint8Array, isConditional: boolean): void {
    const jumpBytes = isConditional ? 6 : 4;
    const target = this.#length + jumpBytes + skipped.length;
    if (isConditional) {
      this.push(1n);
    }
    this.push(BigInt(target), 2);
    this.op(isConditional ? JUMPI : JUMP);
    this.#add(skipped);
    // A push among the skipped bytes would hide the destination.
    this.op(JUMPDEST);
  }

  /** Runs `body` this number of times. It must leave the stack as it was. */
  loop(times: number, body: () => void): void {
    this.push(BigInt(times));
    const start = this.#length;
    this.op(JUMPDEST);
    body();
    this.push(1n);
    this.op(SWAP1, SUB, DUP1);
    this.push(BigInt(start), 2);
    this.op(JUMPI, POP);
  }

  #add(bytes: Uint8Array): void {
    this.#parts.push(bytes);
    this.#length += bytes.length;
  }
}
