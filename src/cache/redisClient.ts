import { createRequire } from "node:module";
import type { Cluster, ClusterOptions, Redis, RedisOptions } from "ioredis";
import { connectionFault, connectionHint } from "../core/connectionFault.ts";
import type { Log } from "../telemetry/telemetry.ts";
import { guardRedisReplies } from "./guardRedisReplies.ts";

/** Hosts, kind and credentials of a Redis deployment. */
export interface RedisAddress {
  readonly kind: "single" | "sentinel" | "cluster";
  /** The sentinels, if `kind` is `sentinel`; otherwise the servers. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** Name of the master that the sentinels monitor. */
  readonly name?: string;
  readonly db: number;
  readonly tls: boolean;
  readonly username?: string;
  readonly password?: string;
  readonly sentinelPassword?: string;
}

const URL_FORM =
  /^redis(?<tls>s?)(?:\+(?<kind>sentinel|cluster))?:\/\/(?:(?<user>[^@/]*)@)?(?<hosts>[^/?]+)(?:\/(?<path>[^?]*))?(?:\?(?<query>.*))?$/;
const HOST_FORM = /^(?<host>\[[0-9a-fA-F:.]+\]|[^:[\]]+)(?::(?<port>\d{1,5}))?$/;
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26_379;

/** No message contains the URL, because it may contain a password. */
const invalid = (reason: string): Error => new Error(`Redis URL: ${reason}`);

/** Parses master name and database. Throws if the path does not fit the kind of deployment. */
const parsePath = (text: string, kind: RedisAddress["kind"]): Pick<RedisAddress, "name" | "db"> => {
  const parts = text.split("/").filter((part) => part !== "");
  const name = kind === "sentinel" ? parts.shift() : undefined;
  if (kind === "sentinel" && name === undefined) {
    throw invalid("the master's name is missing after the sentinels");
  }
  const db = Number(parts.shift() ?? 0);
  if (!Number.isInteger(db) || db < 0 || parts.length > 0) {
    throw invalid("the database must be a number");
  }
  if (kind === "cluster" && db !== 0) {
    throw invalid("a cluster has only database 0");
  }
  return { db, ...(name !== undefined && { name: decode(name) }) };
};

/**
 * Parses a Redis URL: `redis://host:port/db`, `redis+sentinel://h1,h2/name` (or `/name/db`), `redis+cluster://h1,h2`.
 * `user:password@` may precede the hosts. `rediss` selects TLS. `?sentinelPassword=` is the password of the sentinels.
 * Throws an error without the URL.
 */
export const parseRedisUrl = (url: string): RedisAddress => {
  const groups = URL_FORM.exec(url)?.groups;
  if (groups === undefined) {
    throw invalid("expected redis://, rediss://, redis+sentinel:// or redis+cluster:// and hosts");
  }
  const kind = groups.kind === "sentinel" || groups.kind === "cluster" ? groups.kind : "single";
  const hosts = parseHosts(groups.hosts ?? "", kind === "sentinel" ? SENTINEL_PORT : REDIS_PORT);
  if (kind === "single" && hosts.length > 1) {
    throw invalid("several hosts need +sentinel or +cluster");
  }
  const path = parsePath(groups.path ?? "", kind);
  const [username, password] = parseUser(groups.user ?? "");
  const sentinelPassword = new URLSearchParams(groups.query ?? "").get("sentinelPassword");
  return {
    kind,
    hosts,
    ...path,
    tls: groups.tls === "s",
    ...(username !== "" && { username }),
    ...(password !== "" && { password }),
    ...(sentinelPassword !== null && { sentinelPassword }),
  };
};

const parseHosts = (text: string, defaultPort: number): RedisAddress["hosts"] =>
  text.split(",").map((part) => {
    const groups = HOST_FORM.exec(part)?.groups;
    const port = Number(groups?.port ?? defaultPort);
    if (groups?.host === undefined || port < 1 || port > 65_535) {
      throw invalid("a host is not host or host:port");
    }
    return { host: groups.host.replace(/^\[|\]$/g, ""), port };
  });

const parseUser = (text: string): readonly [username: string, password: string] => {
  const colon = text.indexOf(":");
  return colon < 0 ? [decode(text), ""] : [decode(text.slice(0, colon)), decode(text.slice(colon + 1))];
};

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid("a % is not followed by two hex digits");
  }
};

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

/** The server is not the master now, or not yet. After a failover, the name leads to another one. */
const NOT_MASTER = /\b(READONLY|LOADING|MASTERDOWN)\b/;
/** A server that stays in this state still answers reads in between. */
const RECONNECT_EVERY_MS = 1_000;

/** Returns whether to connect again after an error: the host name is looked up, or the sentinels are asked, anew. */
const createReconnectOnError = (): ((error: Error) => boolean) => {
  let reconnectedMs = Number.NEGATIVE_INFINITY;
  return ({ message }) => {
    const nowMs = performance.now();
    if (!NOT_MASTER.test(message) || nowMs - reconnectedMs < RECONNECT_EVERY_MS) {
      return false;
    }
    reconnectedMs = nowMs;
    return true;
  };
};

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
      return new Redis({
        ...{ ...options, ...deployment.hosts[0], db: deployment.db },
        reconnectOnError: createReconnectOnError(),
      });
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
        reconnectOnError: createReconnectOnError(),
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
    // Certificates contain host names, so the client must not replace them by addresses.
    ...(deployment.tls && { dnsLookup: (host, callback) => callback(null, host) }),
  };
  const { Cluster } = loadRedis();
  return new Cluster(
    deployment.hosts.map(({ host, port }) => ({ host, port })),
    { ...clusterOptions, redisOptions },
  );
};

const CLOSED: ReadonlySet<string> = new Set(["Connection is closed."]);

/** Host and port of each server, for log lines. */
export const formatHosts = ({ hosts }: RedisAddress): string =>
  hosts.map(({ host, port }) => `${host}:${port}`).join(",");

/**
 * Creates the client of the deployment at a URL. It logs each cause of a lost connection once, with the host and what to do, and
 * when the connection works again.
 */
export const connectRedis = (
  url: string,
  use: "cache" | "rate limits" | "payments",
  log: Log,
  tls?: RedisTls,
): Redis | Cluster => {
  const address = parseRedisUrl(url);
  const client = createRedisClient(address, tls);
  const logged = new Set<string>();
  const redis = formatHosts(address);
  client.on("error", (error) => {
    const { reason, hint } = redisFault(error, address.tls);
    // A closed connection follows an error that has been logged.
    if (logged.has(reason) || (logged.size > 0 && CLOSED.has(reason))) {
      log.debug({ redis, use, reason }, "Redis connection error");
      return;
    }
    logged.add(reason);
    log.warn({ redis, use, reason, ...(hint !== undefined && { hint }) }, "Redis is not connected");
  });
  client.on("ready", () => {
    if (logged.size > 0) {
      log.info({ redis, use }, "Redis is connected");
    }
    logged.clear();
  });
  return client;
};

export interface RedisFault {
  /** A code, for example ENOTFOUND, or the first word of a reply of Redis, for example WRONGPASS. */
  readonly reason: string;
  readonly hint?: string | undefined;
}

const REPLY = /\b(?:NOAUTH|WRONGPASS|NOPERM|DENIED|LOADING|MASTERDOWN|CLUSTERDOWN)\b/;

const REPLY_HINTS: Readonly<Record<string, string>> = {
  NOAUTH: "the server requires a password: redis://:PASSWORD@host",
  WRONGPASS: "the server rejects the user name or the password of the URL",
  NOPERM: "the ACL of the user does not permit a command that forebay needs",
  DENIED: "the server is in protected mode: set a password, or bind it to this network",
};

/** A cluster hides the error of its node, and the sentinels that of theirs. */
const causeOf = (error: unknown): unknown =>
  error instanceof Error && "lastNodeError" in error && error.lastNodeError instanceof Error
    ? error.lastNodeError
    : error;

const hintOf = (reason: string, tls: boolean): string | undefined => {
  if (tls && reason === "ETIMEDOUT") {
    return "no TLS handshake: use redis:// if the server has no TLS";
  }
  if (!tls && (reason === "ECONNRESET" || reason === "EPIPE")) {
    return "the server closed the connection: use rediss:// if it requires TLS";
  }
  if (/cluster support disabled/.test(reason)) {
    return "the server is not part of a cluster: use redis://";
  }
  return REPLY_HINTS[reason] ?? connectionHint(reason);
};

/** Returns why a connection to Redis failed, without credentials. */
export const redisFault = (error: unknown, tls: boolean): RedisFault => {
  const cause = causeOf(error);
  const reply = cause instanceof Error ? REPLY.exec(cause.message)?.[0] : undefined;
  // ioredis adds the changing delay of its next attempt.
  const reason = reply ?? connectionFault(cause).replace(/ Retrying from scratch.*$/, "");
  return { reason, hint: hintOf(reason, tls) };
};
