/** A log from a subscription or from eth_getLogs, read by any client library. */
export interface BookedLog {
  readonly blockNumber: string | number | bigint | null;
  readonly transactionHash: string | null;
  readonly logIndex: string | number | null;
  readonly removed?: boolean | undefined;
}

/** The result of a subscription's events: logs that were sent and not removed. */
export interface LogBook {
  readonly keys: ReadonlySet<string>;
  /** Logs that were sent twice, or removed before they were sent. */
  readonly faults: readonly string[];
  readonly taken: number;
  add(log: BookedLog): void;
}

export const logKey = ({ blockNumber, transactionHash, logIndex }: BookedLog): string =>
  `${Number(blockNumber)}:${transactionHash}:${Number(logIndex)}`;

export const createLogBook = (): LogBook => {
  const keys = new Set<string>();
  const faults: string[] = [];
  let taken = 0;
  return {
    keys,
    faults,
    get taken() {
      return taken;
    },
    add: (log) => {
      const key = logKey(log);
      if (log.removed) {
        taken++;
        if (!keys.delete(key)) {
          faults.push(`removed, but never sent: ${key}`);
        }
      } else {
        if (keys.has(key)) {
          faults.push(`sent twice: ${key}`);
        }
        keys.add(key);
      }
    },
  };
};

/** Returns the keys of logs in blocks at and above `from`. */
export const keysFrom = (keys: Iterable<string>, from: number): readonly string[] =>
  [...keys].filter((key) => Number(key.split(":", 1)[0]) >= from).sort();
