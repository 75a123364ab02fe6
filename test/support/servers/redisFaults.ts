import { randomBytes } from "node:crypto";
import type { RedisServer } from "./redis.ts";

/** A fault of Redis while it is in use. `end` repairs it. */
export interface RedisFault {
  readonly name: string;
  begin(server: RedisServer): Promise<void>;
  end(server: RedisServer): Promise<void>;
}

/** Replacements of a value, created from it and from another key's value. Undefined replaces it by a value that is not a string. */
const NOISE: readonly ((value: Buffer, other: Buffer) => Buffer | string | undefined)[] = [
  () => randomBytes(200),
  () => "",
  () => '{"a":"value of somebody else"}',
  (value) => value.subarray(0, -1),
  (value) => {
    const flipped = Buffer.from(value);
    flipped[flipped.length - 1] = (flipped.at(-1) ?? 0) ^ 1;
    return flipped;
  },
  (_, other) => other,
  () => undefined,
];

const addNoise = async ({ admin }: RedisServer): Promise<void> => {
  const keys = await admin.keysBuffer("forebay*");
  const values = await admin.mgetBuffer(keys);
  for (const [index, key] of keys.entries()) {
    const value = values[index] ?? Buffer.alloc(0);
    const noise = NOISE[index % NOISE.length]?.(value, values.at(index - 1) ?? value);
    if (noise !== undefined) {
      await admin.set(key, noise);
    } else {
      await admin.multi().del(key).lpush(key, "a list").exec();
    }
  }
};

const nothing = async (): Promise<void> => {};

export const redisFaults: readonly RedisFault[] = [
  { name: "killed", begin: (server) => server.kill(), end: (server) => server.start() },
  {
    name: "paused",
    begin: async (server) => server.signal("SIGSTOP"),
    end: async (server) => server.signal("SIGCONT"),
  },
  {
    name: "full",
    begin: async ({ admin }) => {
      await admin.flushall();
      // Writes of other clients: Redis accepts no more of them from now on.
      await admin.set("other", randomBytes(2_000_000));
      await admin.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "1mb");
    },
    end: async ({ admin }) => {
      await admin.config("SET", "maxmemory", "0");
    },
  },
  {
    name: "restarted",
    begin: async (server) => {
      await server.kill();
      await server.start();
    },
    end: nothing,
  },
  { name: "overwritten with noise", begin: addNoise, end: nothing },
];
