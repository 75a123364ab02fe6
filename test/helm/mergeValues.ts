type Values = Readonly<Record<string, unknown>>;

/** Whether a value of a chart has members. */
export const isMapping = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Merges values like Helm: mappings are merged, other values are replaced. */
export const mergeValues = (base: unknown, over: unknown): unknown => {
  if (!isMapping(base) || !isMapping(over)) {
    return over;
  }
  const merged = Object.entries(over).map(([key, value]) => [key, key in base ? mergeValues(base[key], value) : value]);
  return { ...base, ...Object.fromEntries(merged) };
};
