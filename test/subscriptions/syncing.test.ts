import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { test } from "node:test";
import type { Subscriber } from "../../src/core/context.ts";
import { Deliveries } from "../../src/subscriptions/deliveries.ts";
import { createSubscription, EventCounter, type Subscription } from "../../src/subscriptions/subscriber.ts";
import { createSyncing } from "../../src/subscriptions/syncing.ts";

const PERIOD_MS = 10_000;
const STATUS = '{"startingBlock":"0x0","currentBlock":"0x10","highestBlock":"0x20"}';

test("syncing is sent when it changes, is polled only with a subscription, and ignores failed polls", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const notified: unknown[] = [];
  const subscriber: Subscriber = {
    subscriptions: new Map(),
    isOpen: true,
    notify: (fragments) => notified.push(JSON.parse(Buffer.concat(fragments).toString()).params.result),
    close: () => {},
  };
  const subscribers = new Set<Subscription>();
  const looked = new EventEmitter();
  let answer: string | undefined = "false";
  let asked = 0;
  const syncing = createSyncing({
    subscribers,
    read: async () => {
      asked++;
      setImmediate(() => looked.emit("look"));
      if (answer === undefined) {
        throw new Error("no node answers");
      }
      return Buffer.from(answer);
    },
    deliveries: new Deliveries({ warn: () => assert.fail("an event failed") }),
    events: new EventCounter(),
    delivered: { inc: (count) => assert.equal(count, 1) },
  });
  const look = async (next: string | undefined): Promise<void> => {
    answer = next;
    const done = once(looked, "look");
    t.mock.timers.tick(PERIOD_MS);
    await done;
  };

  t.mock.timers.tick(PERIOD_MS);
  assert.equal(asked, 0, "nobody listens");
  subscribers.add({ ...createSubscription(subscriber), since: 0 });

  await look("false");
  assert.deepEqual(notified, [], "nothing has changed");
  await look(STATUS);
  await look(STATUS);
  await look(undefined);
  assert.deepEqual(notified, [{ syncing: true, status: JSON.parse(STATUS) }]);
  await look("false");
  assert.deepEqual(notified.slice(1), [false]);
  syncing.close();
});
