/** Namespaces that steer a node; debug ones are refused but for reads (architecture.md, server). */
const MANAGEMENT = new Set(["admin", "personal", "engine", "miner"]);

const DEBUG_READS =
  /^debug_(?:trace|getRaw|storageRangeAt$|accountRange$|executionWitness|getBadBlocks$|dbGet$|intermediateRoots$)/;

/** True for a method that no caller may send on unless its namespace is in `allowed`. */
export const isRefusedMethod = (method: string, allowed: ReadonlySet<string>): boolean => {
  const namespace = method.slice(0, Math.max(0, method.indexOf("_")));
  if (allowed.has(namespace)) return false;
  if (MANAGEMENT.has(namespace)) return true;
  return namespace === "debug" && (!DEBUG_READS.test(method) || method.endsWith("ToFile"));
};
