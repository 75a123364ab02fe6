import assert from "node:assert/strict";
import { test } from "node:test";
import { selectWriteSetSources } from "../../../src/state/sources/sourceOrder.ts";
import type { WriteSetOrigin, WriteSetSource } from "../../../src/state/writeSet.ts";

const source = (origin: WriteSetOrigin): WriteSetSource => ({ origin, unitsPerBlock: 0, read: async () => "late" });

test("auto tries feed, access list and trace, and never executes; a named source is the only one", () => {
  const available = (["trace", "execution", "feed", "accessList"] as const).map(source);
  const origins = (option: WriteSetOrigin | "auto", sources = available) =>
    selectWriteSetSources(option, sources).map(({ origin }) => origin);
  assert.deepEqual(origins("auto"), ["feed", "accessList", "trace"]);
  assert.deepEqual(origins("auto", [source("trace")]), ["trace"]);
  assert.deepEqual(origins("execution"), ["execution"]);
  assert.deepEqual(origins("trace"), ["trace"]);
  assert.deepEqual(origins("feed", [source("trace")]), []);
});
