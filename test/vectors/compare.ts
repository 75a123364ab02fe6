import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { rules } from "./rules.ts";
import type { Exchange } from "./vectorFolder.ts";

type Response = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Response =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the shape of a value: names and types of members; for a list, the shape of its first item. */
const shapeOf = (value: unknown): unknown => {
  if (Array.isArray(value)) {
    return value.length === 0 ? [] : [shapeOf(value[0])];
  }
  if (isRecord(value)) {
    return Object.fromEntries(
      Object.keys(value)
        .sort()
        .map((key) => [key, shapeOf(value[key])]),
    );
  }
  return value === null ? "null" : typeof value;
};

/** Asserts that two texts are equal as JSON, or that a rule excepts the difference (a diagnostic). `specOnly` compares shapes. */
export const compare = (t: TestContext, exchange: Exchange, actual: Response, specOnly: boolean): void => {
  const { response } = exchange;
  assert.deepEqual(actual.id, exchange.request.id, "the id is not echoed");
  assert.equal(actual.jsonrpc, "2.0");
  const view = specOnly ? shapeOf : (value: unknown) => value;
  try {
    assert.deepEqual(
      view({ result: actual.result, error: actual.error }),
      view({ result: response.result, error: response.error }),
    );
  } catch (error) {
    const rule = rules.find(({ applies }) => applies(exchange, actual));
    if (rule === undefined) {
      throw error;
    }
    t.diagnostic(`excepted  ${t.name}: ${rule.reason}`);
  }
};
