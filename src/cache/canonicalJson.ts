/**
 * Formats the canonical JSON text of a value: object keys in code unit order, no whitespace, no undefined members.
 * Two values have the same text only if they are equal. A number too large for a double differs from `null`.
 */
export const formatCanonical = (value: unknown): string => {
  if (Array.isArray(value)) {
    return `[${value.map(formatCanonical).join(",")}]`;
  }
  if (typeof value === "object" && value !== null) {
    return formatObject(value as Readonly<Record<string, unknown>>);
  }
  if (typeof value === "number" && !Number.isFinite(value)) {
    return String(value);
  }
  return JSON.stringify(value) ?? "null";
};

const formatObject = (object: Readonly<Record<string, unknown>>): string => {
  const members: string[] = [];
  for (const name of Object.keys(object).sort()) {
    if (object[name] !== undefined) {
      members.push(`${JSON.stringify(name)}:${formatCanonical(object[name])}`);
    }
  }
  return `{${members.join(",")}}`;
};

/** Returns a set's canonical list (addresses, topics of one position): lower case, sorted, without duplicates. */
export const canonicalSet = (values: readonly string[]): string[] =>
  [...new Set(values.map((value) => value.toLowerCase()))].sort();
