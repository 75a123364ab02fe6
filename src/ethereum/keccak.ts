import { createRequire } from "node:module";
import type * as HashWasm from "hash-wasm";
import { type Data, formatData, type Hash } from "./hex.ts";

const require = createRequire(import.meta.url);

/** The index of the package holds all its hash functions: 0.6 MB of text in each thread. */
const { createKeccak }: Pick<typeof HashWasm, "createKeccak"> = require("hash-wasm/dist/keccak.umd.min.js");

// Each thread has one WebAssembly instance. It is six times as fast as JavaScript on short inputs, and synchronous after its load.
const hasher = await createKeccak(256);

/** Returns the keccak-256 hash, 32 bytes. */
export const keccak256 = (bytes: Uint8Array): Uint8Array => hasher.init().update(bytes).digest("binary");
/** Returns the keccak-256 hash in hex. */
export const keccak256Hex = (bytes: Uint8Array): Data => formatData(keccak256(bytes));

/** The code hash of an account without code. */
export const EMPTY_CODE_HASH: Hash = keccak256Hex(new Uint8Array(0));
