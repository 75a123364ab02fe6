import { readFileSync } from "node:fs";

/** Two builds of the same sources: revm, and op-revm for the OP stack. */
export type ModuleKind = "ethereum" | "optimism";

/** Compiled modules by kind. Threads can send them to each other. */
export type FastModules = Partial<Record<ModuleKind, WebAssembly.Module>>;

/** Compiles a module. This takes some milliseconds. */
export const compileModule = (kind: ModuleKind): WebAssembly.Module =>
  new WebAssembly.Module(readFileSync(new URL(`./wasm/${kind}.wasm`, import.meta.url)));
