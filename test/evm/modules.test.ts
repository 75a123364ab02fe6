import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const FOLDER = new URL("../../src/evm/wasm/", import.meta.url);
const read = (name: string) => readFileSync(new URL(name, FOLDER));

test("the committed modules have the committed sums", () => {
  const lines = read("sha256sums").toString().trim().split("\n");
  const sums = new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)]));
  assert.deepEqual([...sums.keys()], ["ethereum.wasm", "optimism.wasm"]);
  for (const [name, sum] of sums) {
    assert.equal(createHash("sha256").update(read(name)).digest("hex"), sum, name);
  }
});

test("the notice lists the crates of the lock file that the modules are made for", () => {
  const notice = read("NOTICE").toString();
  const lock = read("Cargo.lock").toString();
  for (const name of ["revm", "op-revm"]) {
    for (const [, version = ""] of lock.matchAll(new RegExp(`name = "${name}"\nversion = "([^"]+)"`, "g"))) {
      assert.match(notice, new RegExp(`^${name} ${version}: `, "m"));
    }
  }
});
