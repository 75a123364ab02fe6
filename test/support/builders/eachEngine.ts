import { test } from "node:test";
import type { Rules } from "../../../src/ethereum/rules.ts";
import { createEngines, ENGINE_KINDS } from "../../../src/evm/createEngines.ts";
import type { Engine } from "../../../src/evm/engine.ts";

/** Makes one test for each kind of engine. */
export const testEachEngine = (
  name: string,
  run: (engines: (rules: Rules) => Engine) => void | Promise<void>,
): void => {
  for (const kind of ENGINE_KINDS) {
    test(`${name} (${kind})`, () => run(createEngines(kind)));
  }
};
