import type { Rules } from "../ethereum/rules.ts";
import type { Engine, EngineKind, EngineOptions } from "./engine.ts";

/** Returns the engine of a set of rules. */
export type Engines = (rules: Rules) => Engine;

/** Loads the engines of a kind. Each is created once: the library's tables cost more than a transfer. */
export const createEngines = async (kind: EngineKind = "fast", options: EngineOptions = {}): Promise<Engines> =>
  cachedEngines(await load(kind, options));

const load = async (kind: EngineKind, options: EngineOptions): Promise<Engines> => {
  switch (kind) {
    case "fast":
      return (await import("./fast/fastEngine.ts")).createFastEngines(options);
    case "reference": {
      const { ReferenceEngine } = await import("./reference/referenceEngine.ts");
      return (rules) => new ReferenceEngine(rules);
    }
  }
};

const cachedEngines = (create: Engines): Engines => {
  const engines = new Map<string, Engine>();
  return (rules) => {
    const key = `${rules.chainId} ${rules.fork} ${rules.op ?? ""}`;
    const cached = engines.get(key);
    if (cached !== undefined) {
      return cached;
    }
    const engine = create(rules);
    engines.set(key, engine);
    return engine;
  };
};
