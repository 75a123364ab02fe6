import type { Rules } from "../ethereum/rules.ts";
import type { Engine } from "./engine.ts";
import { FastEngine } from "./fastEngine.ts";
import { FastInstances } from "./fastInstances.ts";
import { createOverlayEngine } from "./overlayEngine.ts";

export const ENGINE_KINDS = ["fast", "reference"] as const;
export type EngineKind = (typeof ENGINE_KINDS)[number];

/** Returns a function that makes and caches one engine for each set of rules. The library's tables cost more than a transfer. */
export const createEngines = (
  kind: EngineKind = process.env.ENGINE === "fast" ? "fast" : "reference",
): ((rules: Rules) => Engine) => {
  const engines = new Map<string, Engine>();
  const instances = new FastInstances();
  return (rules) => {
    const key = `${rules.chainId} ${rules.fork} ${rules.op ?? ""}`;
    const cached = engines.get(key);
    if (cached !== undefined) {
      return cached;
    }
    const engine = kind === "fast" ? new FastEngine(rules, instances) : createOverlayEngine(rules);
    engines.set(key, engine);
    return engine;
  };
};
