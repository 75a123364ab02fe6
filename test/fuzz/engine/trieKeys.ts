import type { Choices } from "./random.ts";

const KEY_BYTES = 32;

export const randomBytes = (length: number, choices: Choices): Uint8Array =>
  new Uint8Array(length).map(() => choices.below(256));

/** A key that shares a beginning of any length with another one, so that there are extensions and nodes below 32 bytes. */
export const nextKey = (keys: readonly Uint8Array[], choices: Choices): Uint8Array => {
  const key = randomBytes(KEY_BYTES, choices);
  if (keys.length > 0 && choices.chance(0.7)) {
    const shared = choices.chance(0.5) ? choices.below(3) : choices.below(KEY_BYTES);
    const other = choices.pick(keys);
    key.set(other.subarray(0, shared));
    key[shared] = choices.chance(0.5) ? ((key[shared] ?? 0) & 15) | ((other[shared] ?? 0) & 0xf0) : (key[shared] ?? 0);
  }
  return key;
};
