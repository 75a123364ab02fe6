import assert from "node:assert/strict";
import { test } from "node:test";
import { ProofHeader } from "../../src/http/proofHeader.ts";
import { hashOf } from "../support/builders/flashblocks.ts";

const at = (number: bigint) => ({ block: { number, hash: hashOf(Number(number)) } });
const proven = { grade: "proven", ...at(7n) } as const;
const checked = { grade: "checked", ...at(7n) } as const;

test("the header of one answer", () => {
  const header = new ProofHeader();
  assert.equal(header.format([proven], true), "proven; block=7");
  assert.equal(header.format([checked], true), "checked; block=7");
  assert.equal(header.format([at(8n)], true), "stated; block=8");
  assert.equal(header.format([proven], true), "proven; block=7", "after another block");
  assert.equal(header.format([{ grade: "checked" }], true), "checked");
  assert.equal(header.format([{}], true), "stated");
  assert.equal(header.format([], true), "stated", "an error");
  for (let number = 0n; number < 3_000n; number++) {
    assert.equal(header.format([at(number)], true), `stated; block=${number}`);
  }
  assert.equal(header.format([at(8n)], true), "stated; block=8", "after many blocks");
});

test("a batch has the label of its weakest item, and a block if all items are of it", () => {
  const header = new ProofHeader();
  assert.equal(header.format([proven, proven], true), "proven; block=7");
  assert.equal(header.format([proven, checked], true), "checked; block=7");
  assert.equal(header.format([proven, at(7n), checked], true), "stated; block=7");
  assert.equal(header.format([proven, { grade: "proven", ...at(8n) }], true), "proven");
  assert.equal(header.format([proven, { grade: "proven" }], true), "proven");
  assert.equal(header.format([proven, proven], false), "stated", "an item failed, or follows later");
});
