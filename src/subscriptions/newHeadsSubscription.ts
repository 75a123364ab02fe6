import type { HeadChange, HeaderFields, RingBlock } from "../core/heads.ts";
import { asText, formatJson } from "../json/jsonBytes.ts";
import type { Log } from "../telemetry/telemetry.ts";
import { isAbsent } from "../verification/jsonFields.ts";
import type { RpcReader } from "./sealedLogs.ts";
import { createSerialQueue } from "./serialQueue.ts";
import { broadcast, type Delivered, type Subscription } from "./subscriber.ts";

interface NewHeadsOptions {
  readonly subscribers: ReadonlySet<Subscription>;
  readonly read: RpcReader;
  readonly delivered: Delivered;
  readonly log: Log;
}

const hasSize = ({ size }: HeaderFields): boolean => !isAbsent(size);

/**
 * Creates the delivery of `newHeads`: header and size of every new block, oldest first.
 * After a reorganisation, the blocks of the new branch follow.
 */
export const createNewHeads = ({
  subscribers,
  read,
  delivered,
  log,
}: NewHeadsOptions): ((change: HeadChange) => void) => {
  const inOrder = createSerialQueue((err) => log.warn({ err }, "a new head could not be delivered"));
  /** Heads in the queue. A later head must not overtake them. */
  let waiting = 0;

  const send = (header: HeaderFields): void => broadcast(formatJson(header), subscribers, delivered);

  const readHeader = async ({ hash }: RingBlock): Promise<HeaderFields> => {
    const { transactions, uncles, withdrawals, ...header } = JSON.parse(
      asText(await read("eth_getBlockByHash", [hash, false])),
    );
    return header;
  };

  /** Reads the header if the ring does not have it, or if the node sent it without a size. */
  const complete = async (block: RingBlock, header: HeaderFields | undefined): Promise<HeaderFields> => {
    if (header && hasSize(header)) {
      return header;
    }
    try {
      return await readHeader(block);
    } catch (error) {
      if (header) {
        return header;
      }
      throw error;
    }
  };

  return ({ heads, to }) => {
    if (subscribers.size === 0) {
      return;
    }
    for (const block of to) {
      const header = heads.header(block.number);
      if (header && hasSize(header) && waiting === 0) {
        send(header);
      } else {
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
