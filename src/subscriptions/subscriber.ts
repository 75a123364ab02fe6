import { randomBytes } from "node:crypto";
import { formatData } from "../ethereum/hex.ts";
import type { Notification } from "./notification.ts";

/** One connection, as far as subscriptions know it. */
export interface Subscriber {
  /** Its subscriptions by id, with what ends each. */
  readonly subscriptions: Map<string, () => void>;
  readonly isOpen: boolean;
  notify(fragments: readonly Buffer[]): void;
  /** Tells why and ends it: something that was subscribed to can not be delivered. */
  close(code: number, reason: string): void;
}

export interface Subscription {
  readonly id: string;
  readonly idBytes: Buffer;
  readonly subscriber: Subscriber;
  /** Events after this one are its own (see EventCount). */
  readonly since: number;
}

/** As geth gives them: 16 random bytes. */
export const createSubscription = (subscriber: Subscriber): Omit<Subscription, "since"> => {
  const id = formatData(randomBytes(16));
  return { id, idBytes: Buffer.from(id, "latin1"), subscriber };
};

/** Sends one event to many; returns to how many. */
export const broadcast = (message: Notification, to: Iterable<Subscription>): number => {
  let count = 0;
  for (const { idBytes, subscriber } of to) {
    subscriber.notify(message.render(idBytes));
    count++;
  }
  return count;
};
