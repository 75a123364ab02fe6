import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster, Redis } from "ioredis";
import type { RunScript } from "../core/runScript.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { createRedisHealth, failureReason } from "./redisHealth.ts";

/** No other source can respond instead, so a script may take longer than a lookup. */
const TIMEOUT_MS = 1_000;

const isUnknown = (error: unknown): boolean => error instanceof Error && error.message.startsWith("NOSCRIPT");

/** Runs scripts, each within a second; counts and logs their failures. */
export const createScripts = (client: Redis | Cluster, telemetry: Telemetry): RunScript => {
  const health = createRedisHealth("script", telemetry);
  /** The SHA-1 names of scripts, by their text. */
  const names = new Map<string, string>();

  const nameOf = (lua: string): string => {
    const name = names.get(lua) ?? hash("sha1", lua, "hex");
    names.set(lua, name);
    return name;
  };

  /** Sends the whole text to a server that does not know the script yet. */
  const send: RunScript = async (lua, key, args) => {
    try {
      return await client.evalsha(nameOf(lua), 1, key, ...args);
    } catch (error) {
      if (!isUnknown(error)) {
        throw error;
      }
      return client.eval(lua, 1, key, ...args);
    }
  };

  return async (lua, key, args) => {
    const startMs = performance.now();
    const done = new AbortController();
    const timeoutError = new Error(`Redis did not respond to a script within ${TIMEOUT_MS} ms`);
    const timeout = sleep(TIMEOUT_MS, undefined, { signal: done.signal }).then(() => Promise.reject(timeoutError));
    // It rejects when `done` aborts it, and nobody waits for it then.
    timeout.catch(() => undefined);
    try {
      const reply = await Promise.race([send(lua, key, args), timeout]);
      health.succeeded();
      telemetry.metrics.redisSeconds.observe({ operation: "script" }, (performance.now() - startMs) / 1000);
      return reply;
    } catch (error) {
      health.failed(error === timeoutError ? "timeout" : failureReason(error), 1, error);
      throw error;
    } finally {
      done.abort();
    }
  };
};
