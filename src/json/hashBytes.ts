const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/**
 * FNV-1a of 32 bits (https://datatracker.ietf.org/doc/html/draft-eastlake-fnv), of the bytes from `start` to before `end`.
 * A loop, because a call of native code for a short text costs more. Other seeds give other hashes of the same bytes.
 */
export const hashBytes = (bytes: Uint8Array, start: number, end: number, seed = 0): number => {
  let hash = FNV_OFFSET ^ seed;
  for (let at = start; at < end; at++) {
    hash = Math.imul(hash ^ (bytes[at] ?? 0), FNV_PRIME);
  }
  return hash >>> 0;
};
