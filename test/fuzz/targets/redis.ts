import { connect, createServer } from "node:net";
import { isDeepStrictEqual } from "node:util";
import type { CacheEntry } from "../../../src/cache/cacheEntry.ts";
import { decodeValue, encodeValue } from "../../../src/cache/redisValue.ts";
import { listen } from "../../support/servers/ports.ts";
import { type Lifespan, startRedis } from "../../support/servers/redis.ts";
import { compareWithNode, startFuzzService } from "../engine/fuzzService.ts";
import { mutateBytes } from "../engine/mutateBytes.ts";
import type { Choices } from "../engine/random.ts";
import { type CreateTarget, Finding } from "../engine/target.ts";

const LIVE_EVERY = 50;
const NOISE_EVERY = 500;
const BODIES = [2, 100, 4_095, 4_096, 70_000];
const RESP_WORDS = [
  "\r\n",
  "$-1\r\n",
  "*-1\r\n",
  "$1000000000\r\n",
  ":1\r\n",
  "-ERR x\r\n",
  "*3\r\n",
  "%1\r\n",
  "_\r\n",
  "$0\r\n\r\n",
];

const entryOf = (choices: Choices): CacheEntry => ({
  body: Buffer.alloc(choices.pick(BODIES), `"${choices.below(1_000_000)}"`),
  isFinal: choices.chance(0.5),
  storedAtMs: 1_700_000_000_000,
  ...(choices.chance(0.5) && { block: { number: BigInt(choices.below(2 ** 31)), hash: `0x${"ab".repeat(32)}` } }),
});

/** A value that was changed, or is of another key, must be a miss. */
const checkValue = async (choices: Choices): Promise<void> => {
  const entry = entryOf(choices);
  const value = await encodeValue("key", entry);
  const changed = choices.chance(0.1) ? value : mutateBytes(value, choices);
  const key = choices.chance(0.1) ? "other" : "key";
  const input = changed.subarray(0, 200).toString("hex");
  const decoded = await decodeValue(key, changed);
  const isOwn = key === "key" && changed.equals(value);
  if (isOwn !== (decoded !== undefined)) {
    throw new Finding(isOwn ? "an unchanged value is a miss" : "a changed value is a hit", input);
  }
  if (
    decoded !== undefined &&
    !isDeepStrictEqual({ ...decoded, body: Buffer.from(decoded.body as Uint8Array) }, entry)
  ) {
    throw new Finding("the value differs", input);
  }
};

/** Starts a proxy that changes the replies of Redis. */
const startSpoilingProxy = async (t: Lifespan, port: number, current: () => Choices | undefined) => {
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    client.pipe(upstream);
    upstream.on("data", (chunk: Buffer) => {
      const choices = current();
      client.write(choices?.chance(0.3) === true ? mutateBytes(chunk, choices, RESP_WORDS) : chunk);
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
    }
  });
  t.after(() => server.close());
  return `redis://127.0.0.1:${await listen(server)}`;
};

/** Values of Redis, and the bytes of its replies. */
export const createTarget: CreateTarget = async (t) => {
  const redis = await startRedis(t);
  let current: Choices | undefined;
  const url = await startSpoilingProxy(t, redis.port, () => current);
  const fuzzed = await startFuzzService(t, { rest: { cache: { memoryBytes: 0, redis: url } } });
  const { chain } = fuzzed;
  return {
    // ioredis 6 throws in its listener of the socket if a reply has the form of a message, and no type.
    isKnown: (error) => error instanceof Error && error.stack?.includes("/ioredis/built/DataHandler.js") === true,
    run: async (choices, index) => {
      if (index % LIVE_EVERY !== 0) {
        return checkValue(choices);
      }
      if (index % NOISE_EVERY === 0) {
        for (const key of await redis.admin.keysBuffer("forebay*")) {
          const value = await redis.admin.getBuffer(key).catch(() => null);
          await redis.admin.set(key, mutateBytes(value ?? Buffer.from("x"), choices));
        }
      }
      current = choices;
      const number = `0x${choices.below(chain.head.number).toString(16)}`;
      const method = choices.pick(["eth_getBlockByNumber", "eth_getBlockReceipts"]);
      const params = method === "eth_getBlockByNumber" ? [number, true] : [number];
      await compareWithNode(fuzzed, { method, params }, `${method} ${number}`);
    },
  };
};
