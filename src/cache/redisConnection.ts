import type { Cluster, Redis } from "ioredis";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { redisFault } from "./redisFault.ts";
import type { RedisAddress } from "./redisUrl.ts";

const CLOSED: ReadonlySet<string> = new Set(["Connection is closed."]);

/** Host and port of each server, for log lines. */
export const formatHosts = ({ hosts }: RedisAddress): string =>
  hosts.map(({ host, port }) => `${host}:${port}`).join(",");

/** Logs each cause of a lost connection once, with the host and what to do, and when the connection works again. */
export const logConnection = (
  client: Redis | Cluster,
  address: RedisAddress,
  { log, use }: { readonly log: Telemetry["log"]; readonly use: "cache" | "rate limits" | "payments" },
): void => {
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
};
