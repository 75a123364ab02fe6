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

/** A registration for events. It is made before the client gets its subscription id. */
export interface Registration {
  begin(subscription: Subscription): void;
  end(): void;
}

/** Creates a registration that never rejects a subscription. `begin` returns the function that ends it. */
export const registerIn = (begin: (subscription: Subscription) => () => void): Registration => {
  let end: (() => void) | undefined;
  return {
    begin: (subscription) => {
      end = begin(subscription);
    },
    end: () => end?.(),
  };
};

/** Returns those subscriptions that began before the event, one by one. Some may end before they are asked for. */
export const beganBefore = function* (event: number, subscriptions: Iterable<Subscription>): Generator<Subscription> {
  for (const subscription of subscriptions) {
    if (subscription.since < event) {
      yield subscription;
    }
  }
};

/** The message of one event. It is serialised once; only the subscription's id differs between receivers. */
export interface Notification {
  /** Returns the fragments of the WebSocket message for one subscription. */
  render(id: Buffer): readonly Buffer[];
}

/** Length of every id: `0x` and 16 bytes in hex. */
const ID_LENGTH = 34;

const HEAD = Buffer.from('{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"');
const BEFORE_RESULT = Buffer.from('","result":');
const END = Buffer.from("}}");
const EMPTY_ID = Buffer.alloc(ID_LENGTH);

/** A larger result is one buffer for all receivers. A smaller one is cheaper to copy than to write as a fragment of its own. */
const SHARED_ABOVE_BYTES = 4096;
/** A larger part of a result is shared by all results that have it. */
const OWN_FRAGMENT_BYTES = 16 * 1024;

/** Joins small parts, so that a message has few fragments. */
const joinSmall = (parts: readonly Uint8Array[]): readonly Buffer[] => {
  const joined: Buffer[] = [];
  let small: Uint8Array[] = [];
  const flush = (): void => {
    if (small.length > 0) {
      joined.push(Buffer.concat(small));
      small = [];
    }
  };
  for (const part of parts) {
    if (part.length > OWN_FRAGMENT_BYTES) {
      flush();
      joined.push(Buffer.from(part.buffer, part.byteOffset, part.length));
    } else {
      small.push(part);
    }
  }
  flush();
  return joined;
};

const withId = (template: Buffer, id: Buffer): Buffer => {
  const copy = Buffer.allocUnsafe(template.length);
  template.copy(copy);
  id.copy(copy, HEAD.length);
  return copy;
};

/** Creates the notification of one event. The parts together are the UTF-8 JSON text of its result. */
export const createNotification = (parts: readonly Uint8Array[]): Notification => {
  const [first = END, ...others] = joinSmall([...parts, END]);
  if (others.length === 0 && first.length <= SHARED_ABOVE_BYTES) {
    const template = Buffer.concat([HEAD, EMPTY_ID, BEFORE_RESULT, first]);
    return { render: (id) => [withId(template, id)] };
  }
  const template = Buffer.concat([HEAD, EMPTY_ID, BEFORE_RESULT]);
  return { render: (id) => [withId(template, id), first, ...others] };
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
