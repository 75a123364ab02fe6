import type { AbiParameter } from "viem";

/** Creates a generator of pseudo-random numbers from a seed (mulberry32). */
export const createRandom = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};

/** Creates a generator of integers from 0 below a limit. */
export const createRandomBelow = (seed: number): ((limit: number) => number) => {
  const random = createRandom(seed);
  return (limit) => (random() * 4_294_967_296) % limit;
};

export const pick = <T>(random: () => number, values: readonly T[]): T => {
  const value = values[Math.floor(random() * values.length)];
  if (value === undefined) {
    throw new Error("nothing to pick from");
  }
  return value;
};

/** Creates a random value of an ABI type. Limits of the type are frequent. */
export const randomValue = (random: () => number, parameter: AbiParameter, addresses: readonly string[]): unknown => {
  const { type } = parameter;
  if (type.endsWith("[]")) {
    const items = Math.floor(random() * 4);
    return Array.from({ length: items }, () =>
      randomValue(random, { ...parameter, type: type.slice(0, -2) }, addresses),
    );
  }
  if (type === "tuple" && "components" in parameter) {
    return Object.fromEntries(
      parameter.components.map((part) => [part.name ?? "", randomValue(random, part, addresses)]),
    );
  }
  if (type === "address") {
    return pick(random, addresses);
  }
  if (type === "bool") {
    return random() < 0.5;
  }
  if (type === "string") {
    return "x".repeat(Math.floor(random() * 80));
  }
  if (type === "bytes") {
    return randomHex(random, Math.floor(random() * 200));
  }
  if (type.startsWith("bytes")) {
    return randomHex(random, Number(type.slice(5)));
  }
  return randomNumber(random, type);
};

const randomHex = (random: () => number, bytes: number): string =>
  `0x${Array.from({ length: bytes }, () =>
    Math.floor(random() * 256)
      .toString(16)
      .padStart(2, "0"),
  ).join("")}`;

const randomNumber = (random: () => number, type: string): bigint => {
  const bits = Number(/\d+$/.exec(type)?.[0] ?? "256");
  const value = pick(random, [
    () => BigInt(Math.floor(random() * 30)),
    () => BigInt(Math.floor(random() * 100_000)),
    () => BigInt(randomHex(random, 32)),
    () => (1n << BigInt(bits)) - 1n,
    () => 0n,
  ])();
  return type.startsWith("int") ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
};
