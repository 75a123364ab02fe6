import assert from "node:assert/strict";
import { test } from "node:test";
import type { WriteSetSource, WriteSetSourceKind } from "../../../src/state/writeSet.ts";
import { selectWriteSetSources } from "../../../src/state/writeSet.ts";

const source = (kind: WriteSetSourceKind): WriteSetSource => ({ kind, unitsPerBlock: 0, read: async () => "late" });

test("auto tries feed, access list and trace, and never executes; a named source is the only one", () => {
  const available = (["trace", "feed", "accessList"] as const).map(source);
  const kinds = (option: WriteSetSourceKind | "auto", sources = available) =>
    selectWriteSetSources(option, sources).map(({ kind }) => kind);
  assert.deepEqual(kinds("auto"), ["feed", "accessList", "trace"]);
  assert.deepEqual(kinds("auto", [source("trace")]), ["trace"]);
  assert.deepEqual(kinds("trace"), ["trace"]);
  assert.deepEqual(kinds("feed", [source("trace")]), []);
});
