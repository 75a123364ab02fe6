import { createRedisClient, formatHosts, redisFault } from "../cache/redisClient.ts";
import { parseRedisUrl } from "../cache/redisUrl.ts";
import { CHECK_TIMEOUT_MS, type CheckResult, withHint } from "./checkResult.ts";

/** Connects to Redis and sends PING. Never rejects. Throws an error without the URL if the URL is invalid. */
export const checkRedis = (url: string): Promise<CheckResult> => {
  const subject = "redis";
  const startMs = performance.now();
  const address = parseRedisUrl(url);
  const hosts = formatHosts(address);
  const client = createRedisClient(address);
  const ended = Promise.withResolvers<CheckResult>();
  client.on("error", (error) => {
    const { reason, hint } = redisFault(error, address.tls);
    ended.resolve({ subject, level: "fault", text: withHint(`${hosts}: ${reason}`, hint) });
  });
  client.on("ready", () =>
    client.ping().then(
      () =>
        ended.resolve({
          subject,
          level: "ok",
          text: `${hosts}: PING answered, ${Math.round(performance.now() - startMs)} ms`,
        }),
      (error: unknown) =>
        ended.resolve({ subject, level: "fault", text: `${hosts}: ${redisFault(error, address.tls).reason}` }),
    ),
  );
  const timer = setTimeout(
    () => ended.resolve({ subject, level: "fault", text: `${hosts}: no answer to PING within ${CHECK_TIMEOUT_MS} ms` }),
    CHECK_TIMEOUT_MS,
  );
  return ended.promise.finally(() => {
    clearTimeout(timer);
    client.disconnect();
  });
};
