import { describe, test } from "node:test";
import { addNodeThatLags } from "./reloadedProcess.ts";

describe("a reload that adds a node that lags moves latest not back", { concurrency: true }, () => {
  test("by default", (t) => addNodeThatLags(t, ""));
  test("with blocks of 3 s", (t) => addNodeThatLags(t, "    blockTimeMs: 3000"));
});
