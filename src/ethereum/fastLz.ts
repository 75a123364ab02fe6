const HASH_SIZE = 8_192;
const MAX_DISTANCE = 8_192;
const MAX_LITERAL = 32;
const MAX_MATCH = 262;
/** So many bytes at the end begin no match, and so many are in none. */
const MIN_TAIL = 13;
const MATCH_TAIL = 4;

const read24 = (bytes: Uint8Array, at: number): number =>
  (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16);

const hash = (value: number): number => ((Math.imul(value, 2_654_435_769) >>> 0) >> 19) & (HASH_SIZE - 1);

const literals = (count: number): number => {
  const whole = Math.floor(count / MAX_LITERAL);
  const rest = count % MAX_LITERAL;
  return whole * (MAX_LITERAL + 1) + (rest > 0 ? rest + 1 : 0);
};

const matches = (length: number): number => {
  const whole = Math.floor((length - 1) / MAX_MATCH);
  const rest = (length - 1) % MAX_MATCH;
  return whole * 3 + (rest >= 6 ? 3 : 2);
};

/** How long `bytes` are when compressed by FastLZ (level 1): the OP stack's measure of a transaction's size since Fjord. */
export const fastLzLength = (bytes: Uint8Array): number => {
  const seen = new Int32Array(HASH_SIZE);
  const limit = bytes.length - MIN_TAIL;
  let length = 0;
  let anchor = 0;
  let at = 2;
  const take = (): void => {
    seen[hash(read24(bytes, at))] = at;
    at++;
  };
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
      if (at >= limit) break;
      at++;
    } while (distance >= MAX_DISTANCE || value !== read24(bytes, reference));
    if (at >= limit) break;
    at--;
    if (at > anchor) length += literals(at - anchor);
    const most = bytes.length - MATCH_TAIL - (at + 3);
    let same = 0;
    while (same < most && bytes[reference + 3 + same] === bytes[at + 3 + same]) same++;
    // The reference counts the byte that differs as well, where there is one.
    const matched = same < most ? same + 1 : same;
    length += matches(matched);
    at += matched;
    take();
    take();
    anchor = at;
  }
  return length + literals(bytes.length - anchor);
};
