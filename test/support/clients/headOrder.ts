import { callOverNewConnection } from "./freshConnection.ts";

export interface HeadOrder {
  /** Reads that were answered. */
  readonly reads: number;
  /** Reads that failed: their connection was lost. */
  readonly failed: number;
  /** Answers that were older than an answer that had arrived before the request was sent. */
  readonly older: readonly string[];
}

export interface HeadOrderOptions {
  readonly url: string;
  /** Number of reads. */
  readonly reads: number;
  /** Readers at the same time. */
  readonly readers: number;
  /** Default: the number of the newest block. */
  read?(url: string): Promise<bigint>;
}

const readHead = async (url: string): Promise<bigint> =>
  BigInt(String(await callOverNewConnection(url, "eth_blockNumber")));

/** Reads the head again and again, each time over a new connection. Compares each answer with all that were seen before. */
export const readHeadOrder = async ({ url, reads, readers, read = readHead }: HeadOrderOptions): Promise<HeadOrder> => {
  let highest = 0n;
  let left = reads;
  let failed = 0;
  const older: string[] = [];
  const readOne = async (): Promise<void> => {
    const before = highest;
    try {
      const answer = await read(url);
      if (answer < before) {
        older.push(`${answer} after ${before}`);
      }
      highest = answer > highest ? answer : highest;
    } catch {
      failed++;
    }
  };
  const runReader = async (): Promise<void> => {
    while (left > 0) {
      left--;
      await readOne();
    }
  };
  await Promise.all(Array.from({ length: readers }, runReader));
  return { reads: reads - failed, failed, older };
};
