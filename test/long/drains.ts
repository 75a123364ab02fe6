import { type SharedPortUse, useSharedPort } from "../support/clients/sharedPort.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { type RunningCommand, startCommand } from "../support/servers/command.ts";
import { freePort } from "../support/servers/ports.ts";
import { startRedis } from "../support/servers/redis.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import type { LongOptions } from "./support/longOptions.ts";

const DRAINS = 5;
/** Of one drain. Each has one request. */
const CONNECTIONS = 11_000;
const CLIENTS = 40;
/** The process ends after this share of the connections. */
const BEFORE_SHARE = 0.25;
/** The kernel resets a connection that comes between the last turn of the listener and its end. */
const MAX_RESETS = 10;
/** A shorter run has one drain. */
const WHOLE_SECONDS = 60;
const MAX_SHOWN = 5;

/**
 * Two processes share a port. One after the other ends and is replaced, under clients that connect anew for each request.
 * Counts the new connections that the kernel resets. No other request fails.
 */
export const long = async ({ seconds }: LongOptions) => {
  const uses: SharedPortUse[] = [];
  const exits: (number | null)[] = [];
  await withLifespan(async (t) => {
    const [node, redis, port] = await Promise.all([createFakeNode(), startRedis(t), freePort()]);
    t.after(() => node.close());
    const start = (): Promise<RunningCommand> =>
      startCommand(t, {
        chains: [{ name: "chain", nodes: [{ url: node.url }] }],
        server: { port, reusePort: true },
        cache: { redis: redis.url },
      });
    const replicas = [await start(), await start()];
    const drains = seconds === undefined || seconds >= WHOLE_SECONDS ? DRAINS : 1;
    for (let drain = 0; drain < drains; drain++) {
      const [ending] = replicas.splice(0, 1);
      let ended: Promise<number | null> | undefined;
      const use = await useSharedPort(port, {
        clients: CLIENTS,
        requests: 1,
        isOver: ({ connections }) => connections >= CONNECTIONS,
        onAnswer: ({ connections }) => {
          if (ended === undefined && connections >= CONNECTIONS * BEFORE_SHARE) {
            ending?.signal("SIGTERM");
            ended = ending?.ended;
          }
        },
      });
      uses.push(use);
      exits.push((await ended) ?? null);
      replicas.push(await start());
    }
  });
  const resets = uses.reduce((sum, use) => sum + use.resets, 0);
  const failures = uses.flatMap((use) => use.failures);
  return {
    name: "drains",
    passed: resets <= MAX_RESETS && failures.length === 0 && exits.every((code) => code === 0),
    resets,
    resetsOfDrains: uses.map((use) => use.resets),
    connections: uses.reduce((sum, use) => sum + use.connections, 0),
    failed: failures.length,
    failures: failures.slice(0, MAX_SHOWN),
    exits,
  };
};
