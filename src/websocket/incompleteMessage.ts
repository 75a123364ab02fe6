import { maxPieces, PIECE_BYTES } from "../limits/pieces.ts";

/** Bits of a frame's first two bytes (RFC 6455, section 5.2). */
const FIN = 0x80;
const OPCODE = 0x0f;
const LENGTH = 0x7f;
/** Opcodes from this one on are those of control frames, which can come between the frames of a message. */
const FIRST_CONTROL = 8;
/** Values of the short length: two or eight bytes of length follow. */
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const MASK_BYTES = 4;

/** Returns the length of the header of a client's frame, as far as its first bytes show it. */
const headerBytes = (header: readonly number[]): number => {
  const length = (header[1] ?? 0) & LENGTH;
  return 2 + (length === LENGTH_64 ? 8 : length === LENGTH_16 ? 2 : 0) + MASK_BYTES;
};

const payloadBytes = (header: readonly number[]): number => {
  const length = (header[1] ?? 0) & LENGTH;
  return length < LENGTH_16
    ? length
    : header.slice(2, header.length - MASK_BYTES).reduce((total, byte) => total * 256 + byte, 0);
};

/**
 * Follows the frames of one client (RFC 6455, section 5.2), and knows what the message costs that is not complete.
 * `ws` holds each frame of it, and each chunk in which a frame arrives, as an object of its own.
 */
export class IncompleteMessage {
  #header: number[] = [];
  /** Bytes of the current frame that are still to come. */
  #payloadBytes = 0;
  #isControl = false;
  #isLast = false;
  #pieces = 0;
  #bytes = 0;
  /** Those of the frames of a message that are complete. */
  #heldPieces = 0;
  #heldBytes = 0;

  /** What the message costs that is not complete: 0 if there is none. */
  get costBytes(): number {
    return this.#bytes + this.#pieces * PIECE_BYTES;
  }

  /** Whether these are more pieces than the bytes can need. */
  get areTooMany(): boolean {
    return this.#pieces > maxPieces(this.#bytes);
  }

  /** Takes the next bytes of the connection. */
  add(chunk: Uint8Array): void {
    this.#pieces++;
    for (let at = 0; at < chunk.length; ) {
      const payload = Math.min(this.#payloadBytes, chunk.length - at);
      if (payload > 0) {
        this.#takePayload(payload);
        at += payload;
      } else {
        this.#takeHeader(chunk[at] ?? 0);
        at++;
      }
    }
  }

  #takeHeader(byte: number): void {
    this.#header.push(byte);
    if (this.#header.length < 2 || this.#header.length < headerBytes(this.#header)) {
      return;
    }
    const [first = 0] = this.#header;
    this.#isControl = (first & OPCODE) >= FIRST_CONTROL;
    this.#isLast = (first & FIN) !== 0;
    this.#payloadBytes = payloadBytes(this.#header);
    this.#header = [];
    this.#pieces++;
    if (this.#payloadBytes === 0) {
      this.#endFrame();
    }
  }

  #takePayload(bytes: number): void {
    this.#payloadBytes -= bytes;
    this.#bytes += bytes;
    if (this.#payloadBytes === 0) {
      this.#endFrame();
    }
  }

  /** `ws` holds the data frames of a message until its last one, and no control frame. */
  #endFrame(): void {
    if (!this.#isControl) {
      this.#heldPieces = this.#isLast ? 0 : this.#pieces;
      this.#heldBytes = this.#isLast ? 0 : this.#bytes;
    }
    this.#pieces = this.#heldPieces;
    this.#bytes = this.#heldBytes;
  }
}
