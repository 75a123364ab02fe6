import type { Address, Hash } from "../../../src/ethereum/hex.ts";

/** 20,000 subscriptions to the transfers of 400 persons. Each log matches 50 of them. */
export const CONNECTIONS = 5_000;
export const SUBSCRIPTIONS_EACH = 4;
export const PERSONS = 400;
export const LOGS_A_FLASHBLOCK = 20;
export const FLASHBLOCK_MS = 200;
/** One in ten connections pauses its reads for seconds. */
export const SLOW_EVERY = 10;

export const TOKEN: Address = `0x${"aa".repeat(20)}`;
export const TRANSFER: Hash = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

export const personTopic = (person: number): Hash => `0x${(0xf00000 + person).toString(16).padStart(64, "0")}`;
export const personOf = (connection: number, at: number): number => (connection * SUBSCRIPTIONS_EACH + at) % PERSONS;

/** Microseconds since 1970, as a topic. */
export const timeTopic = (timeMs: number): Hash =>
  `0x${Math.round(timeMs * 1_000)
    .toString(16)
    .padStart(64, "0")}`;
export const readTimeMs = (topic: string): number => Number(topic) / 1_000;
