import type { Rules } from "../ethereum/rules.ts";
import type { Engine } from "./engine.ts";
import { createOverlayEngine } from "./overlayEngine.ts";

/** Returns a function that makes and caches one engine for each set of rules. The library's tables cost more than a transfer. */
export const createEngines = (): ((rules: Rules) => Engine) => {
  const engines = new Map<string, Engine>();
  return (rules) => {
    const key = `${rules.chainId} ${rules.fork} ${rules.op ?? ""}`;
    const cached = engines.get(key);
    if (cached !== undefined) {
      return cached;
    }
    const engine = createOverlayEngine(rules);
    engines.set(key, engine);
    return engine;
  };
};
