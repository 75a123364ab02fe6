/** Returns the smaller value. `Math.min` does not accept bigint. */
export const smaller = (one: bigint, other: bigint): bigint => {
  if (one < other) {
    return one;
  }
  return other;
};

/** Returns the larger value. `Math.max` does not accept bigint. */
export const larger = (one: bigint, other: bigint): bigint => {
  if (one > other) {
    return one;
  }
  return other;
};
