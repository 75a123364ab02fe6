import type { Entry } from "./entry.ts";

/** Entries that replicas share. A failure of any kind is a miss. */
export interface Redis {
  get(key: string): Promise<Entry | undefined>;
  /** Returns at once; nobody waits for the outcome. */
  set(key: string, entry: Entry, seconds: number): void;
  close(): void;
}
