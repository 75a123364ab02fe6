import { Transform, type TransformCallback } from "node:stream";
import { isJsonRpc, mayBeginJsonRpc } from "../jsonrpc/isJsonRpc.ts";
import type { MemoryBudget, MemoryUse } from "../limits/memoryBudget.ts";

/** Status codes of a close frame. RFC 6455, section 7.4.1. */
const PROTOCOL_ERROR = 1002;
const POLICY_VIOLATION = 1008;
const TOO_BIG = 1009;
const TRY_AGAIN_LATER = 1013;

const OPCODE_CLOSE = 0x88;
const FIN = 0x80;
const RESERVED = 0x70;
const OPCODE = 0x0f;
/** Opcodes from this one on are those of control frames. */
const FIRST_CONTROL = 8;
const MASKED = 0x80;
const LENGTH = 0x7f;
/** Values of the short length: two or eight bytes of length follow. */
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const MASK_BYTES = 4;

/** A message that is not passed through, or bytes that are none. `code` is the status of the close frame. */
export class NotPassedError extends Error {
  override readonly name = "NotPassedError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }

  get isJsonRpc(): boolean {
    return this.code === POLICY_VIOLATION;
  }

  /** Returns the close frame for the client. */
  toFrame(): Buffer {
    const reason = Buffer.from(this.message);
    return Buffer.concat([Buffer.from([OPCODE_CLOSE, reason.length + 2, this.code >> 8, this.code & 0xff]), reason]);
  }
}

export interface PassedMessagesOptions {
  readonly maxMessageBytes: number;
  readonly memory: MemoryBudget | undefined;
  readonly clientId: string;
}

/** Returns the length of a frame's header, as far as its first bytes show it. */
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
 * Passes the frames of a client on (RFC 6455, section 5.2), except those that complete a JSON-RPC message: it fails with NotPassedError.
 * The bytes of a message are held until they show that it is not JSON-RPC. No extension may be in use.
 */
export class PassedMessages extends Transform {
  readonly #maxMessageBytes: number;
  readonly #use: MemoryUse | undefined;
  #header: number[] = [];
  #frameBytes = 0;
  #framePosition = 0;
  /** The payload of the current message. Undefined if it is not JSON-RPC. */
  #message: Buffer[] | undefined = [];
  #messageBytes = 0;

  constructor({ maxMessageBytes, memory, clientId }: PassedMessagesOptions) {
    super();
    this.#maxMessageBytes = maxMessageBytes;
    this.#use = memory?.open("requests", clientId);
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    try {
      for (let at = 0; at < chunk.length; ) {
        at = this.#inPayload ? this.#readPayload(chunk, at) : this.#readHeader(chunk, at);
      }
    } catch (error) {
      done(error instanceof Error ? error : new Error("a frame failed", { cause: error }));
      return;
    }
    done(undefined, chunk);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#use?.end();
    done(error);
  }

  get #inPayload(): boolean {
    return this.#header.length > 2 && this.#header.length === headerBytes(this.#header);
  }

  get #isControl(): boolean {
    return ((this.#header[0] ?? 0) & OPCODE) >= FIRST_CONTROL;
  }

  #readHeader(chunk: Buffer, at: number): number {
    this.#header.push(chunk[at] ?? 0);
    if (this.#inPayload) {
      this.#beginFrame();
    }
    return at + 1;
  }

  #beginFrame(): void {
    const [first = 0, second = 0] = this.#header;
    if ((first & RESERVED) !== 0 || (second & MASKED) === 0) {
      throw new NotPassedError(PROTOCOL_ERROR, "invalid frame");
    }
    this.#frameBytes = payloadBytes(this.#header);
    this.#framePosition = 0;
    if (this.#frameBytes === 0) {
      this.#endFrame();
    }
  }

  #readPayload(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#frameBytes - this.#framePosition);
    if (!this.#isControl && this.#message !== undefined) {
      this.#hold(this.#message, chunk.subarray(at, end));
    }
    this.#framePosition += end - at;
    if (this.#framePosition === this.#frameBytes) {
      this.#endFrame();
    }
    return end;
  }

  #hold(message: Buffer[], masked: Buffer): void {
    const mask = this.#header.slice(-MASK_BYTES);
    const payload = Buffer.from(masked);
    for (let index = 0; index < payload.length; index++) {
      payload[index] = (payload[index] ?? 0) ^ (mask[(this.#framePosition + index) % MASK_BYTES] ?? 0);
    }
    message.push(payload);
    this.#messageBytes += payload.length;
    if (this.#messageBytes > this.#maxMessageBytes) {
      throw new NotPassedError(TOO_BIG, "message too large");
    }
    if (this.#use?.tryAdd(payload.length) === false) {
      throw new NotPassedError(TRY_AGAIN_LATER, "server over its memory budget");
    }
    if (message.length === 1 && mayBeginJsonRpc(payload) === false) {
      this.#message = undefined;
      this.#use?.end();
    }
  }

  #endFrame(): void {
    const isEnd = ((this.#header[0] ?? 0) & FIN) !== 0 && !this.#isControl;
    this.#header = [];
    if (!isEnd) {
      return;
    }
    if (this.#message !== undefined && isJsonRpc(Buffer.concat(this.#message))) {
      throw new NotPassedError(POLICY_VIOLATION, "no JSON-RPC is passed through: use the path of the chain");
    }
    this.#message = [];
    this.#messageBytes = 0;
    this.#use?.end();
  }
}
