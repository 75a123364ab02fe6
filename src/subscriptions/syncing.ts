import { createNotification } from "./notification.ts";
import type { Ask } from "./sealedLogs.ts";
import { broadcast, type Subscription } from "./subscriber.ts";

export interface SyncingOptions {
  readonly audience: ReadonlySet<Subscription>;
  readonly ask: Ask;
  onDelivered(count: number): void;
}

/** A node's sync changes over minutes. */
const PERIOD_MS = 10_000;

/** As geth tells it: `{syncing: true, status}` and `false`, when it changes. The nodes are asked while somebody listens. */
export const createSyncing = ({ audience, ask, onDelivered }: SyncingOptions): { close(): void } => {
  let last = "false";
  const look = async (): Promise<void> => {
    const text = new TextDecoder().decode(await ask("eth_syncing", []));
    if (text === last) return;
    last = text;
    const body = text === "false" ? text : `{"syncing":true,"status":${text}}`;
    onDelivered(broadcast(createNotification(Buffer.from(body)), audience));
  };
  const timer = setInterval(() => {
    // A node that does not answer has not said that anything changed.
    if (audience.size > 0) look().catch(() => {});
  }, PERIOD_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
};
