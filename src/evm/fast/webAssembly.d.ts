/** The parts of WebAssembly that the fast engine uses. TypeScript's own declarations come with those of browsers. */
// biome-ignore lint/style/noNamespace: the global is a namespace
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array);
  }
  class Instance {
    readonly exports: Readonly<Record<string, unknown>>;
    constructor(module: Module, imports: Readonly<Record<string, Readonly<Record<string, unknown>>>>);
  }
  class Memory {
    readonly buffer: ArrayBuffer;
    private constructor();
  }
}
