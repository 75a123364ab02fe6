/** Namespaces that control a node. Of `debug`, only reads are allowed (docs/methods.md). */
const MANAGEMENT = new Set(["admin", "personal", "engine", "miner"]);

const DEBUG_READS =
  /^debug_(?:trace|getRaw|storageRangeAt$|accountRange$|executionWitness|getBadBlocks$|dbGet$|intermediateRoots$)/;

/** Whether a method is rejected. Methods of the namespaces in `allowed` are not. */
export const isRefusedMethod = (method: string, allowed: ReadonlySet<string>): boolean => {
  const namespace = method.slice(0, Math.max(0, method.indexOf("_")));
  if (allowed.has(namespace)) {
    return false;
  }
  if (MANAGEMENT.has(namespace)) {
    return true;
  }
  return namespace === "debug" && (!DEBUG_READS.test(method) || method.endsWith("ToFile"));
};
