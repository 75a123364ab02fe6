import { readFileSync } from "node:fs";

/** Two builds of the same sources: revm, and op-revm for the OP stack. */
export type ModuleKind = "ethereum" | "optimism";

/** Compiles a module. V8 shares the compiled code with the other threads of the process. */
export const compileModule = (kind: ModuleKind): WebAssembly.Module =>
  new WebAssembly.Module(readFileSync(new URL(`../wasm/${kind}.wasm`, import.meta.url)));
