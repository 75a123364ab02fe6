import { hash } from "node:crypto";
import type { SharedValues } from "../../core/sharedValues.ts";
import type { BlockCall } from "./callRun.ts";

/** A wallet that repeats a call does so sooner. Calls that are sent once take room in Redis for this time. */
const KEPT_SECONDS = 120;

const decoder = new TextDecoder();

/** Records in Redis that a replica got a call. Returns whether one got it at an earlier block. Never rejects. */
export type WasSeen = (call: BlockCall) => Promise<boolean>;

/** One number for each call: the block at which a replica last got it as a new one. */
export const createWasSeen =
  (values: SharedValues): WasSeen =>
  async ({ key, block }) => {
    const name = `call:${hash("sha1", key)}`;
    const number = Number(block.number);
    const bytes = await values.get(name);
    const seen = bytes === undefined ? Number.NaN : Number(decoder.decode(bytes));
    if (!(seen >= number)) {
      void values.set(name, Buffer.from(String(number)), KEPT_SECONDS);
    }
    return seen < number;
  };
