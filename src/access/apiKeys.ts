import { hash, timingSafeEqual } from "node:crypto";

export interface ApiKeys<K> {
  /** Returns the key whose digest is that of `text`, undefined if there is none. */
  find(text: string): K | undefined;
}

/**
 * Creates the lookup of API keys by their SHA-256 digests.
 * Every digest is compared in constant time, so that timing reveals neither a near guess nor the key it resembles.
 * A key that was found is remembered as text: a lookup by its hash, with a secret seed, reveals nothing either.
 */
export const createApiKeys = <K extends { readonly sha256: string }>(keys: readonly K[]): ApiKeys<K> => {
  const digests = keys.map((key) => ({ key, digest: Buffer.from(key.sha256, "hex") }));
  const known = new Map<string, K>();
  return {
    find: (text) => {
      const remembered = known.get(text);
      if (remembered !== undefined) {
        return remembered;
      }
      const textDigest = hash("sha256", text, "buffer");
      let match: K | undefined;
      for (const { key, digest } of digests) {
        if (timingSafeEqual(textDigest, digest)) {
          match = key;
        }
      }
      if (match !== undefined) {
        known.set(text, match);
      }
      return match;
    },
  };
};
