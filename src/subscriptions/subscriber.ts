import { randomBytes } from "node:crypto";
import type { Subscriber } from "../core/context.ts";
import { formatData } from "../ethereum/hex.ts";
import type { Notification } from "./notification.ts";

export interface Subscription {
  readonly id: string;
  readonly idBytes: Buffer;
  readonly subscriber: Subscriber;
  /** The subscription gets the events after this one (see EventCounter). */
  readonly since: number;
}

/** Creates a subscription with an id of 16 random bytes, as geth does. */
export const createSubscription = (subscriber: Subscriber): Omit<Subscription, "since"> => {
  const id = formatData(randomBytes(16));
  return { id, idBytes: Buffer.from(id, "latin1"), subscriber };
};

/** Sends one event to all receivers and returns their number. */
export const broadcast = (message: Notification, receivers: Iterable<Subscription>): number => {
  let count = 0;
  for (const { idBytes, subscriber } of receivers) {
    subscriber.notify(message.render(idBytes));
    count++;
  }
  return count;
};
