import { SizeSearch } from "./sizeSearch.ts";

/** The limits of a node that are single numbers; Infinity if they are not known. */
const NUMBERS = ["addresses", "topics", "results", "bytes"] as const;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

const parseObject = (bytes: Uint8Array): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(decoder.decode(bytes));
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
};

/** Limits of one node, learned from its own errors. */
export class LearnedLimits {
  readonly blocks = new SizeSearch();
  addresses = Number.POSITIVE_INFINITY;
  topics = Number.POSITIVE_INFINITY;
  results = Number.POSITIVE_INFINITY;
  bytes = Number.POSITIVE_INFINITY;

  /** Formats the limits for another process. */
  save(): Uint8Array {
    const numbers = NUMBERS.filter((name) => Number.isFinite(this[name])).map((name) => [name, this[name]]);
    return encoder.encode(JSON.stringify({ ...this.blocks.save(), ...Object.fromEntries(numbers) }));
  }

  /** Reads the limits that another process saved. The lower of two numbers is used. */
  restore(bytes: Uint8Array): void {
    const saved = parseObject(bytes);
    this.blocks.restore(saved);
    for (const name of NUMBERS) {
      const value = saved[name];
      if (typeof value === "number" && value > 0) {
        this[name] = Math.min(this[name], value);
      }
    }
  }
}
