import assert from "node:assert/strict";
import { test } from "node:test";
import { createLocalReservations } from "../../../src/access/payment/reservations.ts";

const request = { id: "a", digest: "one", seconds: 10 };

test("a reservation ends when it is released, or with the payment", async () => {
  let nowMs = 0;
  const reservations = createLocalReservations(() => nowMs);
  const first = await reservations.reserve(request);
  assert.equal(first?.state, "new");
  assert.equal(await reservations.reserve(request), undefined);
  assert.equal((await reservations.reserve({ ...request, id: "b" }))?.state, "new");
  await first?.release();
  assert.equal((await reservations.reserve(request))?.state, "new");
  nowMs = 9_999;
  assert.equal(await reservations.reserve(request), undefined);
  nowMs = 10_000;
  assert.equal((await reservations.reserve(request))?.state, "new");
});

test("after a settlement without an outcome, only the same request has the payment again, until it is settled", async () => {
  const reservations = createLocalReservations(() => 0);
  await (await reservations.reserve(request))?.suspend();
  assert.equal(await reservations.reserve({ ...request, digest: "two" }), undefined);
  const again = await reservations.reserve(request);
  assert.equal(again?.state, "repeated");
  assert.equal(await reservations.reserve(request), undefined);
  // The payment may be settled, so that no release makes it new.
  await again?.release();
  assert.equal(await reservations.reserve({ ...request, digest: "two" }), undefined);
  assert.equal((await reservations.reserve(request))?.state, "repeated");
});
