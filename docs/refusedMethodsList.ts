import { READING_METHODS, REFUSED_METHODS } from "../src/methods/refusedMethods.ts";

const formatList = (methods: readonly string[]): string => methods.map((method) => `\`${method}\``).join(", ");

/** The list of docs/limits.md: the methods that are refused, and the exceptions. */
export const formatRefusedMethods = (): string =>
  [`Refused: ${formatList(REFUSED_METHODS)}.`, "", `Allowed: ${formatList(READING_METHODS)}.`].join("\n");
