/** Methods by name, or by the part before a `*`: `eth_getLogs`, `debug_*`. */
export interface MethodRules {
  /** Only these; all where it is missing. */
  readonly allow?: readonly string[] | undefined;
  /** Wins over `allow`. */
  readonly deny?: readonly string[] | undefined;
}

const createMatch = (patterns: readonly string[]): ((method: string) => boolean) => {
  const names = new Set(patterns.filter((pattern) => !pattern.endsWith("*")));
  const prefixes = patterns.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1));
  return (method) => names.has(method) || prefixes.some((prefix) => method.startsWith(prefix));
};

/** Undefined where nothing is forbidden. */
export const createMethodRules = ({ allow, deny = [] }: MethodRules): ((method: string) => boolean) | undefined => {
  if (allow === undefined && deny.length === 0) return undefined;
  const isAllowed = allow === undefined ? () => true : createMatch(allow);
  const isDenied = createMatch(deny);
  return (method) => isAllowed(method) && !isDenied(method);
};
