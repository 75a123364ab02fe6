import { hash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import type { RunScript } from "../core/sharedValues.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { failureReason, RedisHealth } from "./redisHealth.ts";

/** No other source can respond instead, so a script may take longer than a lookup. */
const TIMEOUT_MS = 1_000;

const isUnknown = (error: unknown): boolean => error instanceof Error && error.message.startsWith("NOSCRIPT");

/** Runs scripts, each within a second; counts and logs their failures. */
export const createScripts = (client: Redis | Cluster, telemetry: Telemetry): RunScript => {
  const health = new RedisHealth("script", telemetry);
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

  return (lua, key, args) =>
    new Promise((resolve, reject) => {
      const startMs = performance.now();
      let isLate = false;
      const timer = setTimeout(() => {
        isLate = true;
        const error = new Error(`Redis did not respond to a script within ${TIMEOUT_MS} ms`);
        health.failed("timeout", 1, error);
        reject(error);
      }, TIMEOUT_MS);
      const onReply = (reply: unknown): void => {
        if (!isLate) {
          clearTimeout(timer);
          health.succeeded(startMs);
          resolve(reply);
        }
      };
      const onError = (error: unknown): void => {
        if (!isLate) {
          clearTimeout(timer);
          health.failed(failureReason(error), 1, error);
          reject(error);
        }
      };
      send(lua, key, args).then(onReply, onError);
    });
};
