import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { plots } from "../../docs/plots.ts";

test("the plots are drawn from docs/scaling.json (node docs/plots.ts)", () => {
  const drawn = plots();
  assert.equal(drawn.length, 4);
  for (const { file, text } of drawn) {
    assert.equal(readFileSync(file, "utf8"), text, file.pathname);
  }
});

test("each plot has axes with units, and is shown in docs/performance.md", () => {
  const page = readFileSync(new URL("../../docs/performance.md", import.meta.url), "utf8");
  for (const { file, text } of plots()) {
    assert.match(text, /CPU per request/);
    assert.match(text, /\d (?:µs|ms)</);
    const name = file.pathname.split("/").at(-1) ?? "";
    assert.ok(page.includes(`(${name})`), `${name} in docs/performance.md`);
  }
});
