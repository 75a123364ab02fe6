import { createKeccak } from "hash-wasm";
import { type Data, formatData } from "./hex.ts";

// One WebAssembly instance a thread: six times as fast as JavaScript on short inputs, and synchronous once it is there.
const hasher = await createKeccak(256);

export const keccak256 = (bytes: Uint8Array): Uint8Array => hasher.init().update(bytes).digest("binary");
export const keccak256Hex = (bytes: Uint8Array): Data => formatData(keccak256(bytes));
