/** The methods that a node may get. A name with `*` at its end means all methods that begin so. */
export interface MethodRules {
  /** Default: all methods. */
  readonly only?: readonly string[] | undefined;
  readonly never: readonly string[];
}

const createMatcher = (patterns: readonly string[]): ((method: string) => boolean) => {
  const names = new Set(patterns.filter((pattern) => !pattern.endsWith("*")));
  const beginnings = patterns.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1));
  return (method) => names.has(method) || beginnings.some((beginning) => method.startsWith(beginning));
};

/** Creates the function that returns whether a node may get a method. */
export const createMethodFilter = (rules: MethodRules | undefined): ((method: string) => boolean) => {
  if (rules === undefined || (rules.only === undefined && rules.never.length === 0)) {
    return () => true;
  }
  const isOnly = rules.only === undefined ? () => true : createMatcher(rules.only);
  const isNever = createMatcher(rules.never);
  return (method) => isOnly(method) && !isNever(method);
};
