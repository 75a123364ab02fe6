import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../bench/support/nginx.ts";
import { type Lifespan, startRedis } from "../../support/servers/redis.ts";
import { launchReplica, type Replica } from "../../support/servers/replica.ts";
import { BLOCK_MS } from "../chain/blockTime.ts";
import type { ProxySetup, RunningProxy, TruthProxy } from "./proxy.ts";

const { version }: { version: string } = JSON.parse(
  readFileSync(new URL("../../../package.json", import.meta.url), "utf8"),
);

/** The options of docs/operate.md: a Redis for several replicas, and the rest by default. */
const configure = ({ chainId, nodeUrls, feedUrls }: ProxySetup, redisUrl: string | undefined): object => ({
  chains: [
    {
      name: "main",
      chainId,
      nodes: nodeUrls.map((url) => ({ url })),
      // The chain is a private one: its block time and its rules are not known by its id.
      blockTimeMs: BLOCK_MS,
      forks: "prague",
      reads: { agree: 2 },
      ...(feedUrls.length > 0 && { pending: { feeds: feedUrls } }),
    },
  ],
  ...(redisUrl !== undefined && { cache: { redis: redisUrl } }),
});

const startReplica = async (t: Lifespan, folder: string, index: number, config: object) => {
  const [port, opsPort] = await Promise.all([freePort(), freePort()]);
  const file = join(folder, `${index}.yaml`);
  const server = { port, opsPort, drainDelayMs: 0 };
  await writeFile(file, JSON.stringify({ ...config, server, log: { level: "info" } }));
  let replica: Replica | undefined;
  const launch = async (): Promise<void> => {
    replica = await launchReplica({ opsPort, args: ["--config", file] });
  };
  const kill = async (): Promise<void> => {
    replica?.kill();
    await replica?.ended;
  };
  t.after(kill);
  await launch();
  return {
    url: `http://127.0.0.1:${port}/main`,
    restart: async () => {
      await kill();
      await launch();
    },
  };
};

/** Forebay of this tree, as processes of their own. */
export const forebayProxy: TruthProxy = {
  name: "forebay",
  version,
  offers: new Set(["restart", "replicas", "feed"]),
  start: async (t, setup): Promise<RunningProxy> => {
    const folder = await mkdtemp(join(tmpdir(), "forebay-truth-"));
    t.after(() => rm(folder, { recursive: true, force: true }));
    const redis = setup.replicas > 1 ? await startRedis(t) : undefined;
    const replicas = await Promise.all(
      Array.from({ length: setup.replicas }, (_, index) =>
        startReplica(t, folder, index, configure(setup, redis?.url)),
      ),
    );
    return {
      urls: () => replicas.map(({ url }) => url),
      restart: async () => {
        await replicas[0]?.restart();
      },
    };
  },
  template: (setup) => JSON.stringify(configure(setup, setup.replicas > 1 ? "redis://HOST:6379" : undefined), null, 2),
};
