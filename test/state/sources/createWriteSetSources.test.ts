import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createWriteSetSources,
  type WriteSetSourcesOptions,
} from "../../../src/state/sources/createWriteSetSources.ts";

const kindsOf = (source: string, feeds: readonly unknown[] = [{}]): readonly string[] => {
  const config = { name: "chain", pending: { feeds }, state: { source, prove: "auto" } };
  // Nothing else is used before a read.
  const options = { config, upstreams: { nodes: [] }, pipeline: {}, served: { pending: {} }, cost: {} };
  return createWriteSetSources(options as unknown as WriteSetSourcesOptions).map(({ kind }) => kind);
};

test("auto asks feed, access list and trace in this order, and a named source is the only one", () => {
  assert.deepEqual(kindsOf("auto"), ["feed", "accessList", "trace"]);
  assert.deepEqual(kindsOf("auto", []), ["accessList", "trace"]);
  assert.deepEqual(kindsOf("trace"), ["trace"]);
  assert.deepEqual(kindsOf("feed", []), []);
});
