import { createRequire } from "node:module";
import type { Cluster, ClusterOptions, Redis, RedisOptions } from "ioredis";
import { guardRedisReplies } from "./guardRedisReplies.ts";
import type { RedisAddress } from "./redisUrl.ts";

const require = createRequire(import.meta.url);
/** Loaded if a Redis is configured. */
const loadRedis = (): typeof import("ioredis") => {
  guardRedisReplies();
  return require("ioredis");
};

const CONNECT_TIMEOUT_MS = 2_000;
/**
 * A connection with an unanswered command is replaced after this time.
 * Its commands fail, and the server may have moved.
 */
const SILENCE_TIMEOUT_MS = 1_000;
const RETRY_STEP_MS = 50;
const MAX_RETRY_MS = 1_000;
const MAX_REDIRECTIONS = 3;

export interface RedisTls {
  /** PEM of the trusted authorities. Default: those of Node.js, and of NODE_EXTRA_CA_CERTS. */
  readonly ca?: string;
}

/** Returns the delay of retry `times`. It grows to one second, and retries never end. Jitter spreads the replicas. */
const retryDelayMs = (times: number): number =>
  Math.min(times * RETRY_STEP_MS, MAX_RETRY_MS) * (0.5 + Math.random() / 2);

/** The types of ioredis do not allow an undefined `replyMapping`. */
type Options = Omit<RedisOptions, "replyMapping">;

/** Commands are neither queued nor repeated. A command that cannot be sent at once is a cache miss. */
const createOptions = (deployment: RedisAddress, tls: RedisTls): Options => ({
  ...(deployment.username !== undefined && { username: deployment.username }),
  ...(deployment.password !== undefined && { password: deployment.password }),
  ...(deployment.tls && { tls: { ...tls } }),
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: CONNECT_TIMEOUT_MS,
  socketTimeout: SILENCE_TIMEOUT_MS,
  retryStrategy: retryDelayMs,
});

/** Creates the client of a Redis deployment. It connects in the background and reconnects forever. */
export const createRedisClient = (deployment: RedisAddress, tls: RedisTls = {}): Redis | Cluster => {
  const options = createOptions(deployment, tls);
  const { Redis } = loadRedis();
  switch (deployment.kind) {
    case "single":
      return new Redis({ ...options, ...deployment.hosts[0], db: deployment.db });
    case "sentinel":
      return new Redis({
        ...options,
        db: deployment.db,
        name: deployment.name ?? "",
        sentinels: deployment.hosts.map(({ host, port }) => ({ host, port })),
        sentinelRetryStrategy: retryDelayMs,
        // The detector of ioredis can end the client for good if a failover happens while it resolves the master.
        failoverDetector: false,
        ...(deployment.sentinelPassword !== undefined && { sentinelPassword: deployment.sentinelPassword }),
        ...(deployment.tls && { enableTLSForSentinelMode: true, sentinelTLS: { ...tls } }),
        // The old master is a replica now. Ask the sentinels for the new one.
        reconnectOnError: ({ message }) => message.startsWith("READONLY"),
      });
    case "cluster":
      return createCluster(deployment, options);
  }
};

const createCluster = (deployment: RedisAddress, options: Options): Cluster => {
  const { retryStrategy: _, enableOfflineQueue: __, ...redisOptions } = options;
  const clusterOptions: Omit<ClusterOptions, "redisOptions"> = {
    enableOfflineQueue: false,
    maxRedirections: MAX_REDIRECTIONS,
    clusterRetryStrategy: retryDelayMs,
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    // Certificates contain host names, so that the client must not replace them by addresses.
    ...(deployment.tls && { dnsLookup: (host, callback) => callback(null, host) }),
  };
  const { Cluster } = loadRedis();
  return new Cluster(
    deployment.hosts.map(({ host, port }) => ({ host, port })),
    { ...clusterOptions, redisOptions },
  );
};
