import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { metric } from "../clients/rpc.ts";
import { until } from "../clients/until.ts";
import { freePort } from "./ports.ts";

/** Ends resources with a test (its context) or with a bench. */
export interface Lifespan {
  after(end: () => unknown): void;
}

export interface RedisServerOptions {
  readonly password?: string;
  readonly tls?: boolean;
  /** Lines of redis.conf as arguments, e.g. `--maxmemory 5mb`. */
  readonly args?: readonly string[];
  /** Configuration of a sentinel, in lines. The server has no keys then. */
  readonly sentinel?: readonly string[];
}

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** PEM of the throw-away authority, with `tls`. */
  readonly ca: string | undefined;
  /** A connection for the test. */
  readonly admin: Redis;
  signal(name: NodeJS.Signals): void;
  /** Ends the server at once, like a crash. */
  kill(): Promise<void>;
  /** Starts the server again on the same port. */
  start(): Promise<void>;
}

const HOST = "127.0.0.1";
const READY = /Ready to accept connections|Sentinel ID is|Running mode=sentinel/;
const SERVER = ["redis-server", "valkey-server"].find((name) => spawnSync(name, ["--version"]).status === 0) ?? "";

/**
 * Below the ports that the kernel gives to connections of other tests, which could take this one before the server listens.
 * A cluster also uses the port that is 10,000 higher.
 */
const PORTS = { first: 11_000, end: 20_900 };

/** Writes the file that a sentinel rewrites while it runs, and returns the arguments for it. */
const writeSentinelFile = async (directory: string, lines: readonly string[]): Promise<readonly string[]> => {
  const file = join(directory, "sentinel.conf");
  await writeFile(file, `${lines.join("\n")}\n`);
  return [file, "--sentinel"];
};

const createCertificate = async (directory: string): Promise<string> => {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", "key.pem"];
  const names = ["-subj", "/CN=localhost", "-addext", `subjectAltName=DNS:localhost,IP:${HOST}`];
  const args = ["req", "-x509", "-nodes", "-days", "2", ...key, ...names, "-out", "cert.pem"];
  await promisify(execFile)("openssl", args, { cwd: directory });
  return readFile(join(directory, "cert.pem"), "utf8");
};

const launch = async (args: readonly string[], directory: string): Promise<ChildProcess> => {
  const child = spawn(SERVER, args, { cwd: directory, stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const output: string[] = [];
  for await (const line of lines) {
    output.push(line);
    if (READY.test(line)) {
      child.stdout.resume();
      return child;
    }
  }
  throw new Error(`${SERVER} did not start: ${output.join("\n")}`);
};

const end = async (child: ChildProcess | undefined): Promise<void> => {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) {
    return;
  }
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
};

/** Starts a real server on a free port. It ends with the test. */
export const startRedis = async (t: Lifespan, options: RedisServerOptions = {}): Promise<RedisServer> => {
  const directory = await mkdtemp(join(tmpdir(), "forebay-redis-"));
  let child: ChildProcess | undefined;
  let admin: Redis | undefined;
  // One hook: a server that still runs may write into its directory, and after a hook that throws no other one runs.
  t.after(async () => {
    admin?.disconnect();
    await end(child);
    await rm(directory, { recursive: true, force: true });
  });
  const ca = options.tls === true ? await createCertificate(directory) : undefined;
  const port = await freePort(PORTS);
  const ports =
    ca === undefined
      ? ["--port", `${port}`]
      : ["--port", "0", "--tls-port", `${port}`, "--tls-auth-clients", "no"].concat([
          "--tls-cert-file",
          "cert.pem",
          "--tls-key-file",
          "key.pem",
          "--tls-ca-cert-file",
          "cert.pem",
        ]);
  const args = [
    ...(options.sentinel === undefined ? [] : await writeSentinelFile(directory, options.sentinel)),
    ...ports,
    ...["--bind", HOST, "--dir", directory],
    ...(options.sentinel === undefined ? ["--save", "", "--appendonly", "no"] : []),
    ...(options.password === undefined ? [] : ["--requirepass", options.password, "--masterauth", options.password]),
    ...(options.args ?? []),
  ];
  child = await launch(args, directory);
  admin = new Redis({
    host: HOST,
    port,
    ...(options.password !== undefined && { password: options.password }),
    ...(ca !== undefined && { tls: { ca } }),
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
  });
  admin.on("error", () => {});
  const user = options.password === undefined ? "" : `:${encodeURIComponent(options.password)}@`;
  return {
    port,
    url: `${ca === undefined ? "redis" : "rediss"}://${user}${HOST}:${port}`,
    ca,
    admin,
    signal: (name) => {
      child?.kill(name);
    },
    kill: () => end(child),
    start: async () => {
      child = await launch(args, directory);
    },
  };
};

/** Waits until forebay uses the Redis of its cache: it connects in the background, and until then works without it. */
export const untilRedisIsUsed = ({ opsUrl }: { readonly opsUrl: string }): Promise<void> =>
  until(async () => (await metric(opsUrl, "forebay_redis_up")) === 1, "Redis is used");

export interface RedisSentinels {
  readonly url: string;
  readonly master: RedisServer;
  readonly replica: RedisServer;
}

const MASTER_NAME = "forebay";

/** Starts a master, a replica and three sentinels with a quorum of two. */
export const startSentinels = async (t: Lifespan): Promise<RedisSentinels> => {
  const args = ["--repl-diskless-sync-delay", "0"];
  const master = await startRedis(t, { args });
  const replica = await startRedis(t, { args: [...args, "--replicaof", HOST, `${master.port}`] });
  await until(async () => (await replica.admin.info("replication")).includes("master_link_status:up"), "it replicates");
  const sentinels = await Promise.all(Array.from({ length: 3 }, () => startSentinel(t, master.port)));
  for (const { admin } of sentinels) {
    await until(async () => {
      const state = await admin.info("sentinel");
      return state.includes("slaves=1,sentinels=3");
    }, "the sentinels know each other");
  }
  const hosts = sentinels.map(({ port }) => `${HOST}:${port}`).join(",");
  return { url: `redis+sentinel://${hosts}/${MASTER_NAME}`, master, replica };
};

const startSentinel = (t: Lifespan, masterPort: number): Promise<RedisServer> => {
  const sentinel = [
    `sentinel monitor ${MASTER_NAME} ${HOST} ${masterPort} 2`,
    `sentinel down-after-milliseconds ${MASTER_NAME} 500`,
    `sentinel failover-timeout ${MASTER_NAME} 3000`,
  ];
  return startRedis(t, { sentinel });
};

export interface RedisCluster {
  readonly url: string;
  readonly masters: readonly RedisServer[];
  /** The replica of the first master. */
  readonly replica: RedisServer;
}

/** Starts three masters that share the slots, and a replica of the first one. */
export const startCluster = async (t: Lifespan): Promise<RedisCluster> => {
  const args = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0"];
  const start = () => startRedis(t, { args: [...args, "--cluster-replica-validity-factor", "0"] });
  const [first, second, third, replica] = await Promise.all([start(), start(), start(), start()]);
  const masters = [first, second, third];
  await Promise.all(
    masters.map(({ admin }, index) => admin.cluster("ADDSLOTSRANGE", SLOTS[index]?.[0] ?? 0, SLOTS[index]?.[1] ?? 0)),
  );
  // A node does not vote for a master that another node announced while both are in the same epoch.
  await Promise.all(masters.map(({ admin }, index) => admin.cluster("SET-CONFIG-EPOCH", index + 1)));
  for (const other of [second, third, replica]) {
    await first.admin.cluster("MEET", HOST, other.port);
  }
  const isWhole = async ({ admin }: RedisServer): Promise<boolean> => {
    const info = String(await admin.cluster("INFO"));
    return info.includes("cluster_state:ok") && info.includes("cluster_known_nodes:4");
  };
  for (const server of [...masters, replica]) {
    await until(() => isWhole(server), "the cluster is whole");
  }
  await replica.admin.cluster("REPLICATE", String(await first.admin.cluster("MYID")));
  await until(async () => (await replica.admin.info("replication")).includes("master_link_status:up"), "it replicates");
  return { url: `redis+cluster://${masters.map(({ port }) => `${HOST}:${port}`).join(",")}`, masters, replica };
};

const SLOTS = [
  [0, 5_460],
  [5_461, 10_922],
  [10_923, 16_383],
] as const;
