import type { HeadChange, HeaderFields, Heads, RingBlock } from "../core/heads.ts";
import { asText, formatJson } from "../json/jsonBytes.ts";
import { isAbsent } from "../verification/jsonFields.ts";
import type { Deliveries } from "./deliveries.ts";
import { NewBlockReads, type NewBlockReadsOptions } from "./newBlockReads.ts";
import type { RpcReader } from "./sealedLogs.ts";
import { beganBefore, type Delivered, type EventCounter, type Subscription } from "./subscriber.ts";

interface NewHeadsOptions extends NewBlockReadsOptions {
  readonly subscribers: ReadonlySet<Subscription>;
  readonly read: RpcReader;
  readonly deliveries: Deliveries;
  readonly events: EventCounter;
  readonly delivered: Delivered;
  /** Returns a header that needs no read. */
  headerOf(block: RingBlock, heads: Heads): HeaderFields | undefined;
}

const hasSize = ({ size }: HeaderFields): boolean => !isAbsent(size);

/**
 * Creates the delivery of `newHeads`: header and size of every new block, oldest first.
 * After a reorganisation, the blocks of the new branch follow.
 */
export const createNewHeads = (options: NewHeadsOptions): ((change: HeadChange) => void) => {
  const { subscribers, read, deliveries, events, delivered } = options;
  const reads = new NewBlockReads(options);
  /** Heads that are read. A later head must not overtake them. */
  let waiting = 0;

  const send = (header: HeaderFields): void =>
    deliveries.send(delivered, () => formatJson(header), beganBefore(events.next(), subscribers));

  const readHeader = async ({ hash }: RingBlock): Promise<HeaderFields> => {
    const { transactions, uncles, withdrawals, ...header } = JSON.parse(
      asText(await read("eth_getBlockByHash", [hash, false])),
    );
    return header;
  };

  /** Reads the header if the ring does not have it, or if the node sent it without a size. */
  const complete = async (block: RingBlock, header: HeaderFields | undefined): Promise<HeaderFields> => {
    if (header === undefined) {
      return readHeader(block);
    }
    return hasSize(header) ? header : readHeader(block).catch(() => header);
  };

  return ({ heads, to }) => {
    for (const block of subscribers.size === 0 ? [] : to) {
      const header = options.headerOf(block, heads);
      if (header && hasSize(header) && waiting === 0) {
        send(header);
        continue;
      }
      waiting++;
      reads.add(
        block,
        () => complete(block, header),
        (known) => {
          waiting--;
          if (known !== undefined) {
            send(known);
          }
        },
      );
    }
  };
};
