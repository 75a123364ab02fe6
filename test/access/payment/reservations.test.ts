import assert from "node:assert/strict";
import { test } from "node:test";
import { localReservations } from "../../../src/access/payment/payments.ts";

test("a reservation ends when it is released, or with the payment", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const payment = { id: "a", seconds: 10 };
  const reserve = localReservations();
  const release = await reserve(payment);
  assert.ok(release);
  assert.equal(await reserve(payment), undefined);
  assert.ok(await reserve({ ...payment, id: "b" }));
  await release();
  assert.ok(await reserve(payment));
  t.mock.timers.tick(9_999);
  assert.equal(await reserve(payment), undefined);
  t.mock.timers.tick(1);
  assert.ok(await reserve(payment));
});
