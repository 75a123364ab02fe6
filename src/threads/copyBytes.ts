import { setImmediate as nextTurn } from "node:timers/promises";

/** Copying this many bytes into new memory takes up to 0.6 ms. Other work of the event loop runs between the slices of larger ones. */
const SLICE_BYTES = 1024 * 1024;

declare const isCopy: unique symbol;

/** Bytes in memory of their own, which nobody else holds. Only these are moved to a thread. */
export type CopiedBytes = Uint8Array<ArrayBuffer> & { readonly [isCopy]: true };

/** The members of a job's input, of which those that are bytes are copies. */
export interface CopiedInput {
  readonly input: unknown;
  readonly copies: readonly CopiedBytes[];
}

const copyBytes = async (bytes: Uint8Array): Promise<CopiedBytes> => {
  const copy = new Uint8Array(bytes.byteLength);
  for (let at = 0; at < bytes.byteLength; at += SLICE_BYTES) {
    if (at > 0) {
      await nextTurn();
    }
    copy.set(bytes.subarray(at, at + SLICE_BYTES), at);
  }
  return copy as CopiedBytes;
};

/**
 * Copies the members of a job's input that are bytes. They may be a part of the reply of a node that has other results too, and
 * their holders use them further.
 */
export const copyInput = async (input: unknown): Promise<CopiedInput> => {
  const members = typeof input === "object" && input !== null ? Object.entries(input) : [];
  const copied = await Promise.all(
    members
      .filter((member): member is [string, Uint8Array] => member[1] instanceof Uint8Array)
      .map(async ([name, bytes]) => [name, await copyBytes(bytes)] as const),
  );
  return copied.length === 0
    ? { input, copies: [] }
    : { input: { ...Object(input), ...Object.fromEntries(copied) }, copies: copied.map(([, bytes]) => bytes) };
};
