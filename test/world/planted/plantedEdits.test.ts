import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { LONG_FAULTS } from "./longFaults.ts";
import { SOAK_FAULTS } from "./soakFaults.ts";

const ROOT = new URL("../../../", import.meta.url);

for (const [name, { edits }] of Object.entries({ ...LONG_FAULTS, ...SOAK_FAULTS })) {
  test(`the planted fault ${name} fits its modules`, () => {
    for (const { file, from } of edits) {
      assert.equal(readFileSync(new URL(file, ROOT), "utf8").split(from).length, 2, `${file}: ${from}`);
    }
  });
}
