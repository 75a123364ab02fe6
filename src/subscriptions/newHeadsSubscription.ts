import type { HeadChange, HeaderFields, RingBlock } from "../core/heads.ts";
import type { Log } from "../telemetry/telemetry.ts";
import { createNotification } from "./notification.ts";
import type { Ask } from "./sealedLogs.ts";
import { createSerialQueue } from "./serialQueue.ts";
import { broadcast, type Subscription } from "./subscriber.ts";

export interface NewHeadsOptions {
  readonly audience: ReadonlySet<Subscription>;
  readonly ask: Ask;
  onDelivered(count: number): void;
  readonly log: Log;
}

const hasSize = ({ size }: HeaderFields): boolean => size !== undefined;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Every new block's header and size, oldest first; after a reorganisation those of the new branch. */
export const createNewHeads = ({
  audience,
  ask,
  onDelivered,
  log,
}: NewHeadsOptions): ((change: HeadChange) => void) => {
  const inOrder = createSerialQueue((err) => log.warn({ err }, "a new head could not be told to subscriptions"));
  let waiting = 0;

  const send = (header: HeaderFields): void =>
    onDelivered(broadcast(createNotification(encoder.encode(JSON.stringify(header))), audience));

  const read = async ({ hash }: RingBlock): Promise<HeaderFields> => {
    const { transactions, uncles, withdrawals, ...header } = JSON.parse(
      decoder.decode(await ask("eth_getBlockByHash", [hash, false])),
    );
    return header;
  };

  /** After a long break the ring has only the newest headers, and some nodes send headers without a size. */
  const complete = async (block: RingBlock, header: HeaderFields | undefined): Promise<HeaderFields> => {
    if (header && hasSize(header)) return header;
    try {
      return await read(block);
    } catch (error) {
      if (header) return header;
      throw error;
    }
  };

  return ({ heads, to }) => {
    if (audience.size === 0) return;
    for (const block of to) {
      const header = heads.header(block.number);
      if (header && hasSize(header) && waiting === 0) send(header);
      else {
        waiting++;
        inOrder(async () => {
          try {
            send(await complete(block, header));
          } finally {
            waiting--;
          }
        });
      }
    }
  };
};
