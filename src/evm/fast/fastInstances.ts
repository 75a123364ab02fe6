import { readFileSync } from "node:fs";
import type { Address } from "../../ethereum/hex.ts";
import type { ModuleKind } from "../engine.ts";
import { FastInstance } from "./fastInstance.ts";
import type { FastRules } from "./fastRules.ts";

/** States that one instance holds before another is made. Memory of a module never shrinks. */
const MAX_STATES = 256;
const MAX_BYTES = 48 << 20;
const ADDRESS_BYTES = 20;

interface Current {
  readonly instance: FastInstance;
  states: number;
}

/** The instances of one thread. */
export class FastInstances {
  readonly #modules = new Map<ModuleKind, WebAssembly.Module>();
  readonly #isLate: () => boolean;
  readonly #current = new Map<ModuleKind, Current>();

  /** `isLate` reports whether the deadline of the running execution has passed. */
  constructor(isLate: () => boolean = () => false) {
    this.#isLate = isLate;
  }

  /** Returns an instance for one more state. */
  take(kind: ModuleKind): FastInstance {
    const current = this.#current.get(kind);
    if (current !== undefined && isUsedUp(current)) {
      this.#current.delete(kind);
    }
    const next = this.#instance(kind);
    next.states++;
    return next.instance;
  }

  #instance(kind: ModuleKind): Current {
    const current = this.#current.get(kind) ?? {
      instance: new FastInstance(this.#module(kind), this.#isLate),
      states: 0,
    };
    this.#current.set(kind, current);
    return current;
  }

  precompilesOf({ kind, spec }: FastRules): readonly Address[] {
    const { instance } = this.#instance(kind);
    const length = instance.exports.precompiles(spec);
    instance.memory.refresh();
    const start = instance.exports.output();
    return Array.from({ length: length / ADDRESS_BYTES }, (_, at) =>
      instance.memory.address(start + at * ADDRESS_BYTES),
    );
  }

  #module(kind: ModuleKind): WebAssembly.Module {
    const module = this.#modules.get(kind) ?? compileModule(kind);
    this.#modules.set(kind, module);
    return module;
  }
}

const isUsedUp = ({ instance, states }: Current): boolean =>
  states >= MAX_STATES || instance.isBroken || instance.memory.byteLength >= MAX_BYTES;

/** Compiles a module. V8 shares the compiled code with the other threads of the process. */
const compileModule = (kind: ModuleKind): WebAssembly.Module =>
  new WebAssembly.Module(readFileSync(new URL(`../wasm/${kind}.wasm`, import.meta.url)));
