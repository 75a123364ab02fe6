import type { Config } from "../config/schema.ts";
import { timeoutSignal } from "../core/lazySignal.ts";
import { opsUrlOf } from "./health.ts";

const TIMEOUT_MS = 4_000;

/**
 * Takes a node of the running forebay out of use, or back, over its ops port. Returns its answer.
 * Rejects with the reason if it refuses. `isForced`: also the last node that can be used.
 */
export const cordonNode = async (
  { server }: Config,
  action: "cordon" | "uncordon",
  [chain, node]: readonly string[],
  isForced = false,
): Promise<string> => {
  if (chain === undefined || node === undefined) {
    throw new Error(`forebay ${action} CHAIN NODE: the names of the chain and of the node are missing`);
  }
  if (server.opsToken === undefined) {
    throw new Error("server.opsToken is not set, so that nodes cannot be cordoned");
  }
  const path = `/nodes/${encodeURIComponent(chain)}/${encodeURIComponent(node)}/${action}${isForced ? "?force" : ""}`;
  const response = await fetch(`${opsUrlOf(server)}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.opsToken}` },
    signal: timeoutSignal(TIMEOUT_MS),
  });
  const text = (await response.text()).trim();
  if (response.status !== 200) {
    // The answer names the query of the path.
    const reason = text.replace("?force", "--force");
    throw new Error(`${action} ${chain} ${node}: HTTP ${response.status}: ${reason}`);
  }
  return text;
};
