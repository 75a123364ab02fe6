import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BackOff, type Confirmation } from "../../src/nodes/backOff.ts";

test("a back-off that asks first begins only if a call of forebay's own failed too, and asks once at a time", async () => {
  const asked: ((confirmation: Confirmation) => void)[] = [];
  const confirm = () => new Promise<Confirmation>((resolve) => asked.push(resolve));
  const backOff = new BackOff({ failures: 2, openMs: 100, nowMs: () => 0, confirm });
  const fail = () => {
    backOff.begin();
    backOff.failed();
  };
  const answer = async (confirmation: Confirmation) => {
    asked.at(-1)?.(confirmation);
    await nextTurn();
  };
  fail();
  assert.equal(asked.length, 0);
  fail();
  fail();
  assert.equal(asked.length, 1);
  assert.equal(backOff.available, true);
  await answer("contradicted");
  assert.equal(backOff.available, true);
  fail();
  assert.equal(asked.length, 1, "it counts anew");
  fail();
  await answer("notAsked");
  assert.equal(backOff.available, true);
  fail();
  assert.equal(asked.length, 3, "the next failure asks again");
  await answer("confirmed");
  assert.equal(backOff.available, false);
});
