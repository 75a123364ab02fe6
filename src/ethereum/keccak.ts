import { createKeccak } from "hash-wasm";
import { type Data, formatData, type Hash } from "./hex.ts";

// Each thread has one WebAssembly instance. It is six times as fast as JavaScript on short inputs, and synchronous after its load.
const hasher = await createKeccak(256);

/** Returns the keccak-256 hash, 32 bytes. */
export const keccak256 = (bytes: Uint8Array): Uint8Array => hasher.init().update(bytes).digest("binary");
/** Returns the keccak-256 hash in hex. */
export const keccak256Hex = (bytes: Uint8Array): Data => formatData(keccak256(bytes));

/** The code hash of an account without code. */
export const EMPTY_CODE_HASH: Hash = keccak256Hex(new Uint8Array(0));
