import { z } from "zod";

/** A time span; `fallback` is the default. */
export const milliseconds = (fallback: number) => z.number().int().nonnegative().default(fallback);
/** A positive number; `fallback` is the default. */
export const count = (fallback: number) => z.number().int().positive().default(fallback);
/** A name for paths, labels and headers. */
export const lowerCaseName = z
  .string()
  .regex(/^[a-z][a-z0-9-]*$/, "lower-case letters, digits and dashes, a letter first");
/** A method's name, or its beginning and a `*`. */
export const methodPattern = z.string().regex(/^[A-Za-z0-9_]+\*?$/, "a method's name, or its beginning and a *");
/** The URL standard also accepts `http:host`, which is a typing error here. */
const beginsWith = (text: string, protocol: string): boolean =>
  text.slice(0, protocol.length + 3).toLowerCase() === `${protocol}://`;

/** A URL with one of these protocols. */
export const urlWith = (...protocols: string[]) =>
  z.string().refine((text) => URL.canParse(text) && protocols.some((protocol) => beginsWith(text, protocol)), {
    error: `a URL that begins with ${protocols.map((protocol) => `${protocol}://`).join(" or ")}`,
  });

/** The error of a value that an earlier version had. `instead` says what holds now. */
export const removedValue = (value: unknown, instead: string) => ({
  error: ({ input }: { readonly input: unknown }) =>
    input === value ? `${String(value)} is removed: ${instead}` : undefined,
});
