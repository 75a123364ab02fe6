import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Subscriber } from "../../src/core/context.ts";
import { AwaitedTransactions } from "../../src/subscriptions/awaitedTransactions.ts";
import { Deliveries } from "../../src/subscriptions/deliveries.ts";
import type { SealedBlockReceipts } from "../../src/subscriptions/sealedReceipts.ts";
import { beganBefore, createSubscription, type Subscription } from "../../src/subscriptions/subscriber.ts";
import { ReceiptSubscribers } from "../../src/subscriptions/transactionReceipts.ts";

const log = { warn: (fields: object) => assert.fail(JSON.stringify(fields)) };

interface Received {
  readonly result: unknown;
  readonly fragments: readonly Buffer[];
  readonly burst: number;
  readonly atTurn: number;
}

const createRig = (maxTurnMs: number) => {
  const deliveries = new Deliveries(log, maxTurnMs);
  const received: Received[] = [];
  let atTurn = 0;
  const subscribe = (onNotify = () => {}): Subscription => {
    const subscriber: Subscriber = {
      subscriptions: new Map(),
      isOpen: true,
      notify: (fragments, burst) => {
        const { params } = JSON.parse(Buffer.concat(fragments).toString());
        received.push({ result: params.result, fragments, burst, atTurn });
        onNotify();
      },
      close: () => {},
    };
    const subscription = { ...createSubscription(subscriber), since: 0 };
    subscriber.subscriptions.set(subscription.id, () => {});
    return subscription;
  };
  const nextTurn = async (): Promise<void> => {
    await turn();
    atTurn++;
  };
  return { deliveries, received, subscribe, nextTurn };
};

const count = { inc: () => {} };

test("events that take longer than a slice go on in later turns, in their order, as one burst", async () => {
  // Each slice has the time of one step.
  const { deliveries, received, subscribe, nextTurn } = createRig(-1);
  const receivers = Array.from({ length: 3 }, () => subscribe());
  for (let event = 0; event < 4; event++) {
    deliveries.send(count, () => Buffer.from(`${event}`), receivers);
  }
  let isSent = false;
  void deliveries.sent(count).then(() => {
    isSent = true;
  });
  while (!isSent) {
    await nextTurn();
  }
  assert.deepEqual(
    received.map(({ result }) => result),
    [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3],
  );
  assert.equal(new Set(received.map(({ burst }) => burst)).size, 1);
  assert.ok((received.at(-1)?.atTurn ?? 0) >= 10, "one slice had several steps");
  deliveries.send(count, () => Buffer.from("4"), receivers);
  while (received.length < 15) {
    await nextTurn();
  }
  assert.equal(received.at(-1)?.burst, 2);
});

test("kinds of events take turns, and subscriptions that end or begin in between get nothing", async () => {
  const { deliveries, received, subscribe, nextTurn } = createRig(-1);
  const receivers = new Set(Array.from({ length: 200 }, () => subscribe()));
  const other = { inc: () => {} };
  deliveries.send(count, () => Buffer.from('"many"'), beganBefore(1, receivers));
  deliveries.send(other, () => Buffer.from('"one"'), [subscribe()]);
  const [, , , fourth] = receivers;
  assert.ok(fourth);
  receivers.delete(fourth);
  receivers.add({ ...subscribe(), since: 1 });
  while (received.length < 200) {
    await nextTurn();
  }
  await nextTurn();
  assert.equal(received.length, 200);
  assert.ok(received.findIndex(({ result }) => result === "one") < 10);
});

test("an event that fails does not stop the next", () => {
  const failures: object[] = [];
  const deliveries = new Deliveries({ warn: (fields: object) => failures.push(fields) });
  const { received, subscribe } = createRig(1);
  deliveries.send(count, () => {
    throw new Error("not formatted");
  }, [subscribe()]);
  deliveries.send(count, () => Buffer.from("1"), [subscribe()]);
  assert.equal(failures.length, 1);
  assert.deepEqual(
    received.map(({ result }) => result),
    [1],
  );
});

test("subscriptions to one receipt share its bytes", () => {
  const { deliveries, received, subscribe } = createRig(Number.POSITIVE_INFINITY);
  const hash = `0x${"11".repeat(32)}` as const;
  const other = `0x${"22".repeat(32)}` as const;
  const texts = [hash, other].map((transactionHash) =>
    Buffer.from(JSON.stringify({ transactionHash, logsBloom: "x".repeat(transactionHash === hash ? 100_000 : 10) })),
  );
  const receipts = texts.map((text) => ({ text, fields: JSON.parse(String(text)) }));
  const subscribers = new ReceiptSubscribers(new AwaitedTransactions());
  for (let index = 0; index < 3; index++) {
    subscribers.add([hash], subscribe());
    subscribers.add([hash, other], subscribe());
  }
  const body = Buffer.from(`[${texts.join(",")}]`);
  const block: Omit<SealedBlockReceipts, "block"> = { body, receipts, event: 1 };
  subscribers.deliver({ ...block, block: Object(undefined) }, deliveries, count);
  assert.equal(received.length, 6);
  for (const { result, fragments } of received) {
    const lists = [[receipts[0]?.fields], receipts.map(({ fields }) => fields)];
    assert.ok(lists.some((list) => JSON.stringify(list) === JSON.stringify(result)));
    assert.ok(fragments.some(({ buffer }) => buffer === texts[0]?.buffer));
  }
});
