import { Cluster, type ClusterOptions, Redis, type RedisOptions } from "ioredis";
import type { RedisAddress } from "./redisUrl.ts";

const CONNECT_TIMEOUT_MS = 2_000;
/** A connection that owes an answer for so long is made anew: what waits on it is given up, and the server may have moved. */
const SILENCE_TIMEOUT_MS = 1_000;
const RETRY_STEP_MS = 50;
const MAX_RETRY_MS = 1_000;
const MAX_REDIRECTIONS = 3;

export interface RedisTls {
  /** PEM of the authorities to trust; default: those of Node (NODE_EXTRA_CA_CERTS adds to them). */
  readonly ca?: string;
}

/** Grows to a second and never ends; the jitter keeps replicas apart. */
const retryDelayMs = (times: number): number =>
  Math.min(times * RETRY_STEP_MS, MAX_RETRY_MS) * (0.5 + Math.random() / 2);

/** ioredis's types want a reply mapping of undefined left out. */
type Options = Omit<RedisOptions, "replyMapping">;

/** Nothing waits for a connection and nothing is sent twice: a command that cannot be sent now is a miss. */
const createOptions = (place: RedisAddress, tls: RedisTls): Options => ({
  ...(place.username !== undefined && { username: place.username }),
  ...(place.password !== undefined && { password: place.password }),
  ...(place.tls && { tls: { ...tls } }),
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: CONNECT_TIMEOUT_MS,
  socketTimeout: SILENCE_TIMEOUT_MS,
  retryStrategy: retryDelayMs,
});

export const createRedisClient = (place: RedisAddress, tls: RedisTls = {}): Redis | Cluster => {
  const options = createOptions(place, tls);
  switch (place.kind) {
    case "single":
      return new Redis({ ...options, ...place.hosts[0], db: place.db });
    case "sentinel":
      return new Redis({
        ...options,
        db: place.db,
        name: place.name ?? "",
        sentinels: place.hosts.map(({ host, port }) => ({ host, port })),
        sentinelRetryStrategy: retryDelayMs,
        // ioredis's own detector can end the client for good when a failover comes while it resolves the master.
        failoverDetector: false,
        ...(place.sentinelPassword !== undefined && { sentinelPassword: place.sentinelPassword }),
        ...(place.tls && { enableTLSForSentinelMode: true, sentinelTLS: { ...tls } }),
        // The master that we knew is a replica now: ask the sentinels again.
        reconnectOnError: ({ message }) => message.startsWith("READONLY"),
      });
    case "cluster":
      return createCluster(place, options);
  }
};

const createCluster = (place: RedisAddress, options: Options): Cluster => {
  const { retryStrategy: _, enableOfflineQueue: __, ...redisOptions } = options;
  const clusterOptions: Omit<ClusterOptions, "redisOptions"> = {
    enableOfflineQueue: false,
    maxRedirections: MAX_REDIRECTIONS,
    clusterRetryStrategy: retryDelayMs,
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    // Names of a certificate are host names: they must not be looked up first.
    ...(place.tls && { dnsLookup: (host, callback) => callback(null, host) }),
  };
  return new Cluster(
    place.hosts.map(({ host, port }) => ({ host, port })),
    { ...clusterOptions, redisOptions },
  );
};
