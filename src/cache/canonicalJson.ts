/**
 * Canonical JSON text of a JSON value: object keys in code unit order, no white space, members that are undefined left out.
 * Equal values have equal texts, different ones never: a number too large for a double stays apart from `null`.
 */
export const formatCanonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(formatCanonical).join(",")}]`;
  if (typeof value === "object" && value !== null) return formatObject(value as Readonly<Record<string, unknown>>);
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  return JSON.stringify(value) ?? "null";
};

const formatObject = (object: Readonly<Record<string, unknown>>): string => {
  const members: string[] = [];
  for (const name of Object.keys(object).sort()) {
    if (object[name] !== undefined) members.push(`${JSON.stringify(name)}:${formatCanonical(object[name])}`);
  }
  return `{${members.join(",")}}`;
};

/** A list that is asked as a set (addresses, topics in one position): lower case, sorted, each once. */
export const canonicalSet = (values: readonly string[]): string[] =>
  [...new Set(values.map((value) => value.toLowerCase()))].sort();
