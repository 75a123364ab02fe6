/** Rules by method name or by prefix: `eth_getLogs`, `debug_*`. */
export interface MethodRules {
  /** Allows only these methods. Default: all. */
  readonly allow?: readonly string[] | undefined;
  /** Forbids these methods, even if `allow` contains them. */
  readonly deny?: readonly string[] | undefined;
}

/** Creates the check whether a name matches one of the patterns. */
export const createMethodMatcher = (patterns: readonly string[]): ((method: string) => boolean) => {
  const names = new Set(patterns.filter((pattern) => !pattern.endsWith("*")));
  const prefixes = patterns.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1));
  return (method) => names.has(method) || prefixes.some((prefix) => method.startsWith(prefix));
};

/** Creates the look-up of a method in a table by name or prefix. A name precedes all prefixes, and a longer prefix a shorter one. */
export const createMethodLookup = <T>(table: Readonly<Record<string, T>>): ((method: string) => T | undefined) => {
  const names = new Map(Object.entries(table));
  const prefixes = [...names]
    .filter(([name]) => name.endsWith("*"))
    .map(([name, value]) => ({ prefix: name.slice(0, -1), value }))
    .sort((a, b) => b.prefix.length - a.prefix.length);
  return (method) => names.get(method) ?? prefixes.find(({ prefix }) => method.startsWith(prefix))?.value;
};

/** Creates the check of one method name. Undefined if every method is allowed. */
export const createMethodRules = ({ allow, deny = [] }: MethodRules): ((method: string) => boolean) | undefined => {
  if (allow === undefined && deny.length === 0) {
    return undefined;
  }
  const isAllowed = allow === undefined ? () => true : createMethodMatcher(allow);
  const isDenied = createMethodMatcher(deny);
  return (method) => isAllowed(method) && !isDenied(method);
};
