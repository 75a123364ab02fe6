/** Maximum size of the members around a result in its response. A buffer with no more slack holds one response. */
const ENVELOPE_BYTES = 512;

/** Returns the bytes in memory that can be transferred to a thread. It copies them if the buffer holds other data too. */
export const movableBytes = (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
  bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength - bytes.byteLength <= ENVELOPE_BYTES
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new Uint8Array(bytes);
