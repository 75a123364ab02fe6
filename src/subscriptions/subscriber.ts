import { randomBytes } from "node:crypto";
import type { Subscriber } from "../core/context.ts";
import { formatData } from "../ethereum/hex.ts";
import type { CounterSeries } from "../telemetry/summedSeries.ts";

export interface Subscription {
  readonly id: string;
  readonly idBytes: Buffer;
  readonly subscriber: Subscriber;
  /** The subscription gets the events after this one (see EventCounter). */
  readonly since: number;
}

/** The metric of the delivered events of one kind. */
export type Delivered = Pick<CounterSeries, "inc">;

/** Creates a subscription with an id of 16 random bytes, as geth does. */
export const createSubscription = (subscriber: Subscriber): Omit<Subscription, "since"> => {
  const id = formatData(randomBytes(16));
  return { id, idBytes: Buffer.from(id, "latin1"), subscriber };
};

/** Sends one event to all receivers, and counts them. `body` is the UTF-8 JSON text of the result. */
export const broadcast = (body: Uint8Array, receivers: Iterable<Subscription>, delivered: Delivered): void => {
  const message = createNotification(body);
  let count = 0;
  for (const { idBytes, subscriber } of receivers) {
    subscriber.notify(message.render(idBytes));
    count++;
  }
  if (count > 0) {
    delivered.inc(count);
  }
};

/** The message of one event. It is serialised once; only the subscription's id differs between receivers. */
interface Notification {
  /** Returns the fragments of the WebSocket message for one subscription. */
  render(id: Buffer): readonly Buffer[];
}

/** Length of every id: `0x` and 16 bytes in hex. */
const ID_LENGTH = 34;

const HEAD = Buffer.from('{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"');
const BEFORE_RESULT = Buffer.from('","result":');
const END = Buffer.from("}}");
const EMPTY_ID = Buffer.alloc(ID_LENGTH);

/** A larger body is a fragment that all receivers share. A smaller body is cheaper to copy. */
const SHARED_ABOVE_BYTES = 16 * 1024;

const withId = (template: Buffer, id: Buffer): Buffer => {
  const copy = Buffer.allocUnsafe(template.length);
  template.copy(copy);
  id.copy(copy, HEAD.length);
  return copy;
};

/** Creates the notification of one event. */
export const createNotification = (body: Uint8Array): Notification => {
  if (body.length > SHARED_ABOVE_BYTES) {
    const template = Buffer.concat([HEAD, EMPTY_ID, BEFORE_RESULT]);
    const shared = Buffer.concat([body, END]);
    return { render: (id) => [withId(template, id), shared] };
  }
  const template = Buffer.concat([HEAD, EMPTY_ID, BEFORE_RESULT, body, END]);
  return { render: (id) => [withId(template, id)] };
};

/** Numbers the events of a chain, so that a subscription gets only the events after its own start. */
export class EventCounter {
  #current = 0;

  /** Number of the newest event; 0 before the first. */
  get current(): number {
    return this.#current;
  }

  /** Counts an event and returns its number. */
  next(): number {
    this.#current++;
    return this.#current;
  }
}
