import type { TestContext } from "node:test";
import { createService, type ServiceChain } from "../../support/servers/service.ts";
import type { StandInChain } from "../state/standInChain.ts";
import { startWorldNode, type WorldNodeOptions } from "./worldNode.ts";

/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;

/** Starts a service in front of a node that has geth's traces of the chain. With `pushes`, the service subscribes to its heads. */
export const startTraced = async (
  t: TestContext,
  chain: StandInChain,
  state: ServiceChain["state"],
  { pushes = false, hasCallTraces }: { readonly pushes?: boolean } & Pick<WorldNodeOptions, "hasCallTraces"> = {},
) => {
  const node = await startWorldNode(t, chain, { traces: "geth", hasCallTraces });
  const service = await createService({
    nodes: [{ url: node.url, ...(pushes && { wsUrl: node.wsUrl }) }],
    blockTimeMs: LONG_MS,
    forks: "prague",
    state: { waitMs: LONG_MS, ...state },
  });
  t.after(() => service.close());
  if (pushes) {
    await node.subscribed;
  }
  return { node, service };
};
