/** Math.min and Math.max know no bigint. */
export const smaller = (one: bigint, other: bigint): bigint => {
  if (one < other) return one;
  return other;
};

export const larger = (one: bigint, other: bigint): bigint => {
  if (one > other) return one;
  return other;
};
