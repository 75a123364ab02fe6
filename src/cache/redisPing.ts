import type { Cluster, Redis } from "ioredis";

const PING_MS = 2_000;

export interface RedisPingOptions {
  readonly client: Redis | Cluster;
  readonly timeoutMs: number;
  readonly onResult: (isUp: boolean) => void;
}

const answers = async ({ client, timeoutMs }: RedisPingOptions): Promise<boolean> => {
  if (client.status !== "ready") {
    return false;
  }
  const deadline = new Promise<false>((resolve) => setTimeout(resolve, timeoutMs, false).unref());
  return Promise.race([
    client.ping().then(
      () => true,
      () => false,
    ),
    deadline,
  ]);
};

/** Sends PING every two seconds, and at once after each connection. Returns the function that ends it. */
export const pingRedis = (options: RedisPingOptions): (() => void) => {
  const ping = (): void => void answers(options).then(options.onResult);
  options.client.on("ready", ping).on("close", () => options.onResult(false));
  const timer = setInterval(ping, PING_MS).unref();
  return () => clearInterval(timer);
};
