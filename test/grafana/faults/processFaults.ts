import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { WebSocket } from "ws";
import { rpc } from "../../support/clients/rpc.ts";
import { startCommand } from "../../support/servers/command.ts";
import { type Lifespan, startRedis } from "../../support/servers/redis.ts";
import { createLiveChain, startLiveNode } from "../liveNode.ts";
import type { AlertFault } from "./alertFault.ts";
import { readAccounts, serve } from "./nodeFaults.ts";

const READERS = 14;
const SUBSCRIPTIONS = 40;
const EXTRA_BYTES = 20_000;
const BUFFER_BYTES = 50_000;
/** Stops in one call, each followed by a pause. */
const STOPS = 4;
const STOPPED_MS = 150;
const RESULT_BYTES = 1_000_000;
const RESULTS = 8;
const CACHE_BYTES = 2_000_000_000;
/** Requests are repeated for this much longer than the offset to "yesterday". */
const MORE_HITS_SECONDS = 5;

/** Starts a process of its own. Calls have large results. */
const startOwn = async (t: Lifespan) => {
  const large = `0x${"ab".repeat(RESULT_BYTES / 2)}`;
  const node = await startLiveNode(t, createLiveChain(t), { eth_call: () => large });
  const config = {
    chains: [{ name: "chain", nodes: [{ url: node.url }], forks: "none" as const }],
    cache: { memoryBytes: CACHE_BYTES },
  };
  return { forebay: await startCommand(t, config), config };
};

const subscribe = async (t: Lifespan, url: string): Promise<WebSocket> => {
  const socket = new WebSocket(url.replace("http", "ws"));
  t.after(() => socket.terminate());
  await once(socket, "open");
  for (let id = 1; id <= SUBSCRIPTIONS; id++) {
    socket.send(JSON.stringify({ jsonrpc: "2.0", id, method: "eth_subscribe", params: ["newHeads"] }));
  }
  return socket;
};

export const PROCESS_FAULTS: Readonly<Record<string, AlertFault>> = {
  "Redis is down": {
    alerts: ["ForebayRedisDown", "ForebayRateLimitOff"],
    start: async (t) => {
      const redis = await startRedis(t);
      const { url: node } = await startLiveNode(t);
      const { url, opsUrl } = await serve(
        t,
        { nodes: [{ url: node }] },
        { cache: { redis: redis.url }, access: { limitPerAddress: { calls: 1_000 }, limitStore: "redis" } },
      );
      return { opsUrl, begin: () => redis.kill(), call: () => readAccounts(url) };
    },
  },
  "the data folder is replaced by a file": {
    alerts: ["ForebayDataFolderDown"],
    start: async (t) => {
      const parent = await mkdtemp(join(tmpdir(), "forebay-fault-"));
      t.after(() => rm(parent, { recursive: true, force: true }));
      const dataDir = join(parent, "data");
      const { url: node } = await startLiveNode(t);
      const { url, opsUrl } = await serve(t, { nodes: [{ url: node }] }, { server: { dataDir } });
      const begin = async (): Promise<void> => {
        await rm(dataDir, { recursive: true });
        await writeFile(dataDir, "a file");
      };
      return { opsUrl, begin, call: () => rpc(url, "eth_getBlockByNumber", ["latest", false]) };
    },
  },
  "clients do not read their events": {
    alerts: ["ForebaySlowReaders"],
    start: async (t) => {
      const chain = createLiveChain(t);
      const large = { extraData: `0x${"00".repeat(EXTRA_BYTES)}` };
      const { url: node } = await startLiveNode(t, chain, {
        eth_getBlockByNumber: ([tag]) => ({ ...(chain.blocks[Number(tag)] ?? chain.latest).json, ...large }),
        eth_getBlockByHash: ([hash]) => ({ ...chain.byHash(hash)?.json, ...large }),
      });
      const { url, opsUrl } = await serve(
        t,
        { nodes: [{ url: node }] },
        { server: { webSocketBufferBytes: BUFFER_BYTES } },
      );
      const sockets = await Promise.all(Array.from({ length: READERS }, () => subscribe(t, url)));
      let hasBegun = false;
      const begin = (): void => {
        hasBegun = true;
        for (const socket of sockets) {
          socket.pause();
        }
      };
      // Others follow, because a busy process closes the first ones in more than one window of the alert.
      const call = async (): Promise<void> => {
        if (hasBegun) {
          const socket = await subscribe(t, url);
          socket.pause();
        }
      };
      return { opsUrl, begin, call };
    },
  },
  "clients stop to repeat their requests": {
    alerts: ["ForebayHitRatioDrop"],
    start: async (t, { maxOffsetSeconds }) => {
      const hitsMs = (maxOffsetSeconds + MORE_HITS_SECONDS) * 1_000;
      const { url: node } = await startLiveNode(t);
      const { url, opsUrl } = await serve(t, { nodes: [{ url: node }] });
      const repeat = () => rpc(url, "eth_getBlockByNumber", ["0x1", false]);
      let startedMs = Number.POSITIVE_INFINITY;
      return {
        opsUrl,
        begin: () => {
          startedMs = performance.now();
        },
        call: async () => {
          const isRepeated = performance.now() - startedMs < hitsMs;
          await (isRepeated ? Promise.all([repeat(), repeat(), repeat()]) : readAccounts(url));
        },
      };
    },
  },
  "the cache grows": {
    alerts: ["ForebayMemory"],
    start: async (t) => {
      const { forebay } = await startOwn(t);
      let count = 0;
      const to = () => `0x${(++count).toString(16).padStart(40, "0")}`;
      const call = () =>
        Promise.all(Array.from({ length: RESULTS }, () => rpc(forebay.url, "eth_call", [{ to: to() }, "latest"])));
      return { opsUrl: forebay.opsUrl, call };
    },
  },
  "the process has too little CPU": {
    alerts: ["ForebayEventLoop"],
    start: async (t) => {
      const { forebay } = await startOwn(t);
      const call = async (): Promise<void> => {
        for (let stop = 0; stop < STOPS; stop++) {
          forebay.signal("SIGSTOP");
          await wait(STOPPED_MS);
          forebay.signal("SIGCONT");
          await wait(STOPPED_MS);
        }
      };
      return { opsUrl: forebay.opsUrl, call };
    },
  },
  "a changed configuration is wrong": {
    alerts: ["ForebayReloadRefused"],
    start: async (t) => {
      const { forebay, config } = await startOwn(t);
      const begin = () => forebay.reconfigure({ ...config, chains: [] });
      return { opsUrl: forebay.opsUrl, begin };
    },
  },
};
