import { setTimeout as sleep } from "node:timers/promises";
import { type ConfiguredServer, startConfigured } from "../../bench/support/forebay.ts";
import { pick } from "../../support/builders/randomValues.ts";
import { rpc } from "../../support/clients/rpc.ts";
import type { Lie } from "../../support/fakes/lyingNode.ts";
import type { Lifespan } from "../../support/servers/redis.ts";
import { STAND_IN_ACCOUNTS } from "../../world/state/randomStateBlocks.ts";
import { replicaConfig, type SharedReplicasOptions, SOURCE_METHODS, startSourceNode } from "./sharedReplicas.ts";

const KILLED_SHARE = 0.3;
const READ_MS = 100;

export interface KilledHolderOptions extends Omit<SharedReplicasOptions, "onSource"> {
  readonly random: () => number;
}

/**
 * Runs a further replica in a process of its own until the signal aborts. It is killed while it has the lease of a write set, and
 * started again. Resolves with the number of kills.
 */
export const runKilledHolder = async (t: Lifespan, options: KilledHolderOptions, signal: AbortSignal) => {
  const { random } = options;
  let server: ConfiguredServer | undefined;
  let killing: Promise<void> | undefined;
  let kills = 0;
  const kill: Lie = {
    ...{ name: "kill", methods: SOURCE_METHODS },
    result: async (result) => {
      if (killing === undefined && random() < KILLED_SHARE) {
        kills++;
        killing = server?.stop("SIGKILL");
      }
      return result;
    },
  };
  const node = await startSourceNode(t, options, [kill]);
  const { chains, cache } = replicaConfig(options, node.url, "honest");
  const config = { chains, cache, server: { port: 0, opsPort: 0 }, log: { level: "info" } };
  while (!signal.aborted) {
    killing = undefined;
    const started = await startConfigured(config);
    server = started;
    while (!signal.aborted && killing === undefined) {
      const read = rpc(`http://127.0.0.1:${started.port}`, "eth_getBalance", [
        pick(random, STAND_IN_ACCOUNTS),
        "latest",
      ]);
      await read.catch(() => undefined);
      await sleep(READ_MS);
    }
    await killing;
    await started.end();
  }
  return kills;
};
