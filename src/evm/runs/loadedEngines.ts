import type { Engines } from "../createEngines.ts";
import type { EngineKind } from "../engineKind.ts";
import type { ModuleKind } from "../fast/fastModule.ts";
import type { EvmTaskData } from "./runMessages.ts";

/** The engines of one thread, by kind. Chains with different kinds share the thread. */
export class LoadedEngines {
  readonly #load: (kind: EngineKind, module: ModuleKind) => Promise<Engines>;
  readonly #engines = new Map<EngineKind, Promise<Engines>>();

  constructor(load: (kind: EngineKind, module: ModuleKind) => Promise<Engines>) {
    this.#load = load;
  }

  of({ engine, module }: EvmTaskData): Promise<Engines> {
    const engines = this.#engines.get(engine) ?? this.#load(engine, module);
    this.#engines.set(engine, engines);
    return engines;
  }
}
