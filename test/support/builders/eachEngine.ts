import { test } from "node:test";
import { createEngines, type Engines } from "../../../src/evm/createEngines.ts";
import { createOverlayEngine } from "../../../src/evm/overlayEngine.ts";

const KINDS: readonly (readonly [string, () => Engines | Promise<Engines>])[] = [
  ["fast", () => createEngines("fast")],
  ["overlay", () => createOverlayEngine],
];

/** Makes one test for each kind of engine that executes every chain. */
export const testEachEngine = (name: string, run: (engines: Engines) => void | Promise<void>): void => {
  for (const [kind, load] of KINDS) {
    test(`${name} (${kind})`, async () => run(await load()));
  }
};
