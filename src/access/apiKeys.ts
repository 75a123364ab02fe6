import { hash, timingSafeEqual } from "node:crypto";

export interface ApiKeys<K> {
  /** The key that this text is, or undefined. */
  find(text: string): K | undefined;
}

/**
 * Only digests are kept. Every one of them is compared, each in constant time: how long that takes says nothing of how
 * near a guess was, or which key it was near to.
 */
export const createApiKeys = <K extends { readonly sha256: string }>(keys: readonly K[]): ApiKeys<K> => {
  const digests = keys.map((key) => ({ key, digest: Buffer.from(key.sha256, "hex") }));
  return {
    find: (text) => {
      const given = hash("sha256", text, "buffer");
      let found: K | undefined;
      for (const { key, digest } of digests) if (timingSafeEqual(given, digest)) found = key;
      return found;
    },
  };
};
