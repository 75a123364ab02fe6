import type { Deliveries } from "./deliveries.ts";
import type { RpcReader } from "./sealedLogs.ts";
import { beganBefore, type Delivered, type EventCounter, type Subscription } from "./subscriber.ts";

interface SyncingOptions {
  readonly subscribers: ReadonlySet<Subscription>;
  readonly read: RpcReader;
  readonly deliveries: Deliveries;
  readonly events: EventCounter;
  readonly delivered: Delivered;
}

/** A node synchronises for minutes, so that a longer period is enough. */
const SYNCING_PERIOD_MS = 10_000;

/**
 * Sends `{syncing: true, status}` or `false` to subscriptions when the state changes, in geth's form.
 * Requests eth_syncing only while there is a subscription.
 */
export const createSyncing = (options: SyncingOptions): { close(): void } => {
  const { subscribers, read, deliveries, events, delivered } = options;
  let last = "false";
  const poll = async (): Promise<void> => {
    const text = new TextDecoder().decode(await read("eth_syncing", []));
    if (text === last) {
      return;
    }
    last = text;
    const body = text === "false" ? text : `{"syncing":true,"status":${text}}`;
    deliveries.send(delivered, () => Buffer.from(body), beganBefore(events.next(), subscribers));
  };
  const timer = setInterval(() => {
    // A failed request does not report a change. The next poll retries.
    if (subscribers.size > 0) {
      poll().catch(() => undefined);
    }
  }, SYNCING_PERIOD_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
};
