import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { RedisStore } from "../../src/cache/redisStore.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { until } from "../support/clients/until.ts";
import { listen } from "../support/servers/ports.ts";
import { startRedis } from "../support/servers/redis.ts";

/** A Redis behind a proxy that can replace its replies to MGET. */
interface SpoiledRedis {
  readonly url: string;
  /** Replaces the replies to MGET from now on. Undefined passes them on. */
  spoil(reply: ((client: Socket) => void) | undefined): void;
  /** Whether each byte of the replies is sent alone. */
  drip(isDripping: boolean): void;
  /** Number of replaced replies. */
  spoiled(): number;
}

/** Sends each byte in a turn of its own, until the connection is closed. */
const drip = async (client: Socket, bytes: Uint8Array): Promise<void> => {
  client.setNoDelay(true);
  for (let at = 0; at < bytes.length && !client.destroyed; at++) {
    client.write(bytes.subarray(at, at + 1));
    await nextTurn();
  }
};

const startSpoiledRedis = async (t: TestContext): Promise<SpoiledRedis> => {
  const redis = await startRedis(t);
  let reply: ((client: Socket) => void) | undefined;
  let spoiled = 0;
  let isDripping = false;
  const server = createServer((client) => {
    const upstream = connect(redis.port, "127.0.0.1");
    client.on("data", (chunk: Buffer) => {
      if (reply !== undefined && chunk.toString("latin1").toLowerCase().includes("mget")) {
        spoiled++;
        reply(client);
      } else {
        upstream.write(chunk);
      }
    });
    upstream.on("data", (chunk: Buffer) => (isDripping ? void drip(client, chunk) : client.write(chunk)));
    upstream.on("error", () => client.destroy());
    client.on("error", () => upstream.destroy()).on("close", () => upstream.destroy());
  });
  const port = await listen(server);
  t.after(() => server.close());
  return {
    url: `redis://127.0.0.1:${port}`,
    spoil: (next) => {
      reply = next;
    },
    drip: (next) => {
      isDripping = next;
    },
    spoiled: () => spoiled,
  };
};

const ENTRY = { body: Buffer.from('"0x1"'), isFinal: true, storedAtMs: 1 };

const startStore = async (t: TestContext): Promise<{ redis: SpoiledRedis; store: RedisStore }> => {
  const redis = await startSpoiledRedis(t);
  const store = new RedisStore({
    url: redis.url,
    timeoutMs: 1_000,
    telemetry: createTelemetry({ level: "silent" }),
  });
  t.after(() => store.close());
  await until(async () => {
    store.set("key", ENTRY, 60);
    return (await store.get("key")) !== undefined;
  }, "an entry is read");
  return { redis, store };
};

/** A client that has lost a connection pauses, and then connects again. */
const untilRead = (store: RedisStore): Promise<void> =>
  until(async () => (await store.get("key")) !== undefined, "an entry is read again");

const REPLIES: Readonly<Record<string, string>> = {
  "null instead of a list": "*-1\r\n",
  "a push without a type": ">1\r\n_\r\n",
  "a push of an empty list": ">1\r\n*0\r\n",
  "a subscription without a channel": ">1\r\n$9\r\nsubscribe\r\n",
  "more replies than commands": "*1\r\n$-1\r\n_\r\n_\r\n",
  "a number instead of a value": "*1\r\n:7\r\n",
  "a list instead of a value": "*1\r\n*1\r\n:7\r\n",
  "an unknown type": "?\r\n",
  "a length that is not a number": "*1\r\n$abc\r\n",
  "a list of two billion items": "*2000000000\r\n",
};

for (const [name, reply] of Object.entries(REPLIES)) {
  test(`a reply of Redis is a miss, and the next reads work: ${name}`, async (t) => {
    const { redis, store } = await startStore(t);
    redis.spoil((client) => client.write(reply));
    await until(async () => {
      assert.equal(await store.get("key"), undefined);
      return redis.spoiled() > 0;
    }, "a reply was spoiled");
    redis.spoil(undefined);
    await untilRead(store);
  });
}

test("a value of Redis that claims 64 MiB closes the connection before it is received", async (t) => {
  const { redis, store } = await startStore(t);
  let sentBytes = 0;
  const part = Buffer.alloc(65_536, 0x61);
  const closed = Promise.withResolvers<void>();
  redis.spoil((client) => {
    client.once("close", () => closed.resolve());
    const send = async (): Promise<void> => {
      client.write("*1\r\n$67108864\r\n");
      while (!client.destroyed && sentBytes < 67_108_864) {
        sentBytes += part.length;
        if (!client.write(part)) {
          await Promise.race([once(client, "drain").catch(() => undefined), closed.promise]);
        }
      }
    };
    void send();
  });
  assert.equal(await store.get("key"), undefined);
  await closed.promise;
  assert.ok(sentBytes < 16 * 1024 * 1024, `${sentBytes} bytes were sent`);
  redis.spoil(undefined);
  await untilRead(store);
});

test("a reply of Redis in pieces of one byte is read, and one in more pieces than it can need ends the connection", async (t) => {
  const { redis, store } = await startStore(t);
  redis.drip(true);
  await untilRead(store);
  redis.drip(false);
  const closed = Promise.withResolvers<void>();
  redis.spoil((client) => {
    client.once("close", () => closed.resolve());
    void drip(client, Buffer.from(`*1\r\n$100000\r\n${"a".repeat(100_000)}\r\n`));
  });
  assert.equal(await store.get("key"), undefined);
  await closed.promise;
  redis.spoil(undefined);
  await untilRead(store);
});
