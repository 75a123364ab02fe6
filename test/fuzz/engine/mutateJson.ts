import type { Choices } from "./random.ts";

const HEX_LENGTHS = [0, 1, 2, 3, 39, 40, 41, 63, 64, 65, 128, 514, 4_000];
const hexOf = (choices: Choices): string =>
  `0x${"0123456789abcdefABCDEF"[choices.below(22)]?.repeat(choices.pick(HEX_LENGTHS))}`;
const LONG = 20_000;
const MANY = 2_000;
const LEVELS = 300;

const nested = (levels: number): unknown => {
  let value: unknown = "0x0";
  for (let level = 0; level < levels; level++) {
    value = level % 2 === 0 ? [value] : { a: value };
  }
  return value;
};

type Create = (choices: Choices) => unknown;

/** Values at the limits of their types, and of other types. */
const VALUES: readonly Create[] = [
  () => null,
  () => true,
  () => "",
  () => [],
  () => ({}),
  () => 0,
  () => -1,
  () => 1.5,
  () => 2 ** 53,
  () => 1e308,
  () => "0x",
  () => "0x0",
  () => "latest",
  () => "pending",
  () => "\u0000\ud800é",
  () => "__proto__",
  hexOf,
  hexOf,
  (choices) => `0x${choices.below(1_000).toString(16)}`,
  (choices) => `0x${"f".repeat(choices.pick([8, 16, 17, 32, 64, 65]))}`,
  () => "x".repeat(LONG),
  () => Array(MANY).fill("0x1"),
  () => nested(LEVELS),
];

const oddValue: Create = (choices) => choices.pick(VALUES)(choices);

type Fields = Record<string, unknown>;

const changeObject = (value: Fields, choices: Choices): unknown => {
  const keys = Object.keys(value);
  const key = keys[choices.below(keys.length + 1)];
  if (key === undefined) {
    return { ...value, [choices.pick(["a", "__proto__", "id", "0x1", "gas", "blockHash"])]: oddValue(choices) };
  }
  if (choices.chance(0.2)) {
    const { [key]: _, ...rest } = value;
    return rest;
  }
  return { ...value, [key]: mutateJson(value[key], choices) };
};

const changeArray = (value: readonly unknown[], choices: Choices): unknown => {
  const index = choices.below(value.length + 1);
  if (index === value.length) {
    return [...value, choices.chance(0.5) ? oddValue(choices) : value[choices.below(value.length)]];
  }
  if (choices.chance(0.15)) {
    return value.toSpliced(index, 1);
  }
  return value.toSpliced(index, 1, mutateJson(value[index], choices));
};

/** Changes one place of a JSON value: replaces, removes or adds a member. */
export const mutateJson = (value: unknown, choices: Choices): unknown => {
  if (choices.chance(0.1) || typeof value !== "object" || value === null) {
    return typeof value === "string" && value.length > 0 && choices.chance(0.3)
      ? value.slice(0, choices.below(value.length))
      : oddValue(choices);
  }
  return Array.isArray(value) ? changeArray(value, choices) : changeObject(value as Fields, choices);
};
