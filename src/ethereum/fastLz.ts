const HASH_SIZE = 8_192;
const MAX_DISTANCE = 8_192;
const MAX_LITERAL = 32;
const MAX_MATCH = 262;
/** No match begins within this number of bytes before the end. */
const MIN_TAIL = 13;
/** No match includes the last bytes of the input: this number of them. */
const MATCH_TAIL = 4;

const read24 = (bytes: Uint8Array, at: number): number =>
  (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16);

const hash = (value: number): number => ((Math.imul(value, 2_654_435_769) >>> 0) >> 19) & (HASH_SIZE - 1);

/** Returns the encoded length of `count` literal bytes. */
const literalsLength = (count: number): number => {
  const whole = Math.floor(count / MAX_LITERAL);
  const rest = count % MAX_LITERAL;
  return whole * (MAX_LITERAL + 1) + (rest > 0 ? rest + 1 : 0);
};

/** Returns the encoded length of a match of `length` bytes. */
const matchEncodedLength = (length: number): number => {
  const whole = Math.floor((length - 1) / MAX_MATCH);
  const rest = (length - 1) % MAX_MATCH;
  return whole * 3 + (rest >= 6 ? 3 : 2);
};

/** Counts the bytes after the first three that match at `reference` and `at`. The first different byte counts too, as in FastLZ. */
const countMatched = (bytes: Uint8Array, reference: number, at: number): number => {
  const limit = bytes.length - MATCH_TAIL - (at + 3);
  let same = 0;
  while (same < limit && bytes[reference + 3 + same] === bytes[at + 3 + same]) {
    same++;
  }
  return same < limit ? same + 1 : same;
};

/**
 * Returns the length of `bytes` after compression with FastLZ (level 1), in bytes.
 * The OP stack estimates a transaction's size with it since Fjord.
 * Source: https://specs.optimism.io/protocol/fjord/exec-engine.html#fjord-l1-cost-fee-changes-fastlz-estimator
 */
export const fastLzLength = (bytes: Uint8Array): number => {
  const seen = new Int32Array(HASH_SIZE);
  const limit = bytes.length - MIN_TAIL;
  let length = 0;
  let anchor = 0;
  let at = 2;
  while (at < limit) {
    let distance = 0;
    let reference = 0;
    let value = 0;
    do {
      value = read24(bytes, at);
      const slot = hash(value);
      reference = seen[slot] ?? 0;
      seen[slot] = at;
      distance = at - reference;
      if (at >= limit) {
        break;
      }
      at++;
    } while (distance >= MAX_DISTANCE || value !== read24(bytes, reference));
    if (at >= limit) {
      break;
    }
    at--;
    if (at > anchor) {
      length += literalsLength(at - anchor);
    }
    const matched = countMatched(bytes, reference, at);
    length += matchEncodedLength(matched);
    at += matched;
    for (const end = at + 2; at < end; at++) {
      seen[hash(read24(bytes, at))] = at;
    }
    anchor = at;
  }
  return length + literalsLength(bytes.length - anchor);
};
