import { createNotification } from "./notification.ts";
import type { RpcReader } from "./sealedLogs.ts";
import { broadcast, type Subscription } from "./subscriber.ts";

export interface SyncingOptions {
  readonly subscribers: ReadonlySet<Subscription>;
  readonly read: RpcReader;
  onDelivered(count: number): void;
}

/** A node synchronises for minutes, so that a longer period is enough. */
const PERIOD_MS = 10_000;

/**
 * Sends `{syncing: true, status}` or `false` to subscriptions when the state changes, in geth's form.
 * Requests eth_syncing only while there is a subscription.
 */
export const createSyncing = ({ subscribers, read, onDelivered }: SyncingOptions): { close(): void } => {
  let last = "false";
  const poll = async (): Promise<void> => {
    const text = new TextDecoder().decode(await read("eth_syncing", []));
    if (text === last) {
      return;
    }
    last = text;
    const body = text === "false" ? text : `{"syncing":true,"status":${text}}`;
    onDelivered(broadcast(createNotification(Buffer.from(body)), subscribers));
  };
  const timer = setInterval(() => {
    // A failed request does not report a change. The next poll retries.
    if (subscribers.size > 0) {
      poll().catch(() => undefined);
    }
  }, PERIOD_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
};
