import { createNotification } from "./notification.ts";
import { broadcast, type Subscription } from "./subscriber.ts";

export interface PoolEventsOptions {
  /** The nodes' pools; rejects where no node offers them. */
  readonly source: { subscribe(isFull: boolean, listener: (body: Uint8Array) => void): Promise<() => void> };
  onDelivered(count: number): void;
}

/** A place among the listeners, taken before the caller is told so. */
export interface Registration {
  begin(subscription: Subscription): void;
  end(): void;
}

interface PoolListener {
  readonly audience: Set<Subscription>;
  readonly stop: Promise<() => void>;
  places: number;
}

/** newPendingTransactions: one listener at the source for all subscriptions of a form, and none without any. */
export const createPoolEvents = ({
  source,
  onDelivered,
}: PoolEventsOptions): ((isFull: boolean) => Promise<Registration>) => {
  const listening = new Map<boolean, PoolListener>();

  const listen = (isFull: boolean): PoolListener => {
    const audience = new Set<Subscription>();
    const stop = source.subscribe(isFull, (body) => onDelivered(broadcast(createNotification(body), audience)));
    return { audience, stop, places: 0 };
  };

  return async (isFull) => {
    const entry = listening.get(isFull) ?? listen(isFull);
    listening.set(isFull, entry);
    entry.places++;
    const leave = (): boolean => {
      entry.places--;
      if (entry.places > 0) return false;
      if (listening.get(isFull) === entry) listening.delete(isFull);
      return true;
    };
    let stop: () => void;
    try {
      stop = await entry.stop;
    } catch (error) {
      leave();
      throw error;
    }
    let own: Subscription | undefined;
    return {
      begin: (subscription) => {
        own = subscription;
        entry.audience.add(subscription);
      },
      end: () => {
        if (own) entry.audience.delete(own);
        if (leave()) stop();
      },
    };
  };
};
