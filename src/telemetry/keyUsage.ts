import type { CallUsage } from "../core/context.ts";

/** The amounts that are counted for each key. */
export const AMOUNTS = ["calls", "errors", "savedCalls", "units", "savedUnits", "receivedBytes", "sentBytes"] as const;

export type Amounts = Readonly<Record<(typeof AMOUNTS)[number], number>>;

/** The amounts of one key since the start. Plain numbers, because every cache hit changes them. */
export class KeyUsage implements CallUsage, Amounts {
  readonly key: string;
  calls = 0;
  /** Calls that ended with an error. */
  errors = 0;
  /** Calls that needed no call to a node. */
  savedCalls = 0;
  units = 0;
  savedUnits = 0;
  receivedBytes = 0;
  /** Before compression. */
  sentBytes = 0;

  constructor(key: string) {
    this.key = key;
  }

  countCall(units: number, isError: boolean, isSaved: boolean): void {
    this.calls++;
    this.units += units;
    if (isError) {
      this.errors++;
    }
    if (isSaved) {
      this.savedCalls++;
      this.savedUnits += units;
    }
  }

  receive(bytes: number): void {
    this.receivedBytes += bytes;
  }

  send(bytes: number): void {
    this.sentBytes += bytes;
  }
}

/** The key of the sum of all keys that are not listed. */
export const OTHER_KEY = "other";
