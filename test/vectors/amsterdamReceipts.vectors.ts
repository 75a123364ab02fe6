import assert from "node:assert/strict";
import { test } from "node:test";
import { checkBody } from "../../src/verification/checkBody.ts";
import { readJson } from "./vectorFolder.ts";

type Fields = Readonly<Record<string, unknown>>;

interface Report {
  readonly header: Fields;
  readonly receipts: readonly Fields[];
  readonly forgedReceipts: readonly Fields[];
}

const { header, receipts, forgedReceipts } = readJson("reports/42-amsterdam-receipt-gas.json") as Report;

const outcomeOf = (list: readonly Fields[]) => {
  const { hash, number, receiptsRoot, logsBloom } = header;
  const known = {
    ...{ hash: String(hash), number: BigInt(String(number)), receiptsRoot: String(receiptsRoot) },
    ...{ logsBloom: String(logsBloom), isComputed: true },
  };
  return checkBody(Buffer.from(JSON.stringify(list)), { kind: "receipts", location: {}, header: known }).at(-1);
};

test("receipts since Amsterdam have the root of their header, and the gas between neighbours", () => {
  assert.equal(outcomeOf(receipts)?.outcome, "passed");
  assert.equal(outcomeOf(forgedReceipts)?.outcome, "failed");
  for (const at of receipts.keys()) {
    const forged = receipts.map((each, index) => (index === at ? { ...each, gasUsed: "0x5208" } : each));
    assert.equal(outcomeOf(forged)?.outcome, "failed");
  }
});
