import { createNotification } from "./notification.ts";
import { broadcast, type Subscription } from "./subscriber.ts";

export interface PoolEventsOptions {
  /** The pools of the nodes. `subscribe` rejects if no node offers the subscription. */
  readonly source: { subscribe(isFull: boolean, listener: (body: Uint8Array) => void): Promise<() => void> };
  onDelivered(count: number): void;
}

/** A registration for events. It is made before the client gets its subscription id. */
export interface Registration {
  begin(subscription: Subscription): void;
  end(): void;
}

interface PoolListener {
  readonly subscribers: Set<Subscription>;
  readonly stop: Promise<() => void>;
  registrations: number;
}

/**
 * Creates the delivery of `newPendingTransactions`. Hashes and full transactions have one listener each at the source.
 * A listener stops with its last registration. The returned function rejects if no node offers the subscription.
 */
export const createPoolEvents = ({
  source,
  onDelivered,
}: PoolEventsOptions): ((isFull: boolean) => Promise<Registration>) => {
  const listeners = new Map<boolean, PoolListener>();

  const listen = (isFull: boolean): PoolListener => {
    const subscribers = new Set<Subscription>();
    const stop = source.subscribe(isFull, (body) => onDelivered(broadcast(createNotification(body), subscribers)));
    return { subscribers, stop, registrations: 0 };
  };

  /** Returns true if this was the listener's last registration. */
  const release = (isFull: boolean, listener: PoolListener): boolean => {
    listener.registrations--;
    if (listener.registrations > 0) {
      return false;
    }
    if (listeners.get(isFull) === listener) {
      listeners.delete(isFull);
    }
    return true;
  };

  return async (isFull) => {
    const listener = listeners.get(isFull) ?? listen(isFull);
    listeners.set(isFull, listener);
    listener.registrations++;
    let stop: () => void;
    try {
      stop = await listener.stop;
    } catch (error) {
      release(isFull, listener);
      throw error;
    }
    let own: Subscription | undefined;
    return {
      begin: (subscription) => {
        own = subscription;
        listener.subscribers.add(subscription);
      },
      end: () => {
        if (own) {
          listener.subscribers.delete(own);
        }
        if (release(isFull, listener)) {
          stop();
        }
      },
    };
  };
};
