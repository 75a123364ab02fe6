import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { startRedis } from "./redis.ts";

/** A Redis behind a proxy that can replace its replies to MGET. */
export interface SpoiledRedis {
  readonly url: string;
  /** Replaces the replies to MGET from now on. Undefined passes them on. */
  spoil(reply: ((client: Socket) => void) | undefined): void;
  /** Number of replaced replies. */
  spoiled(): number;
}

export const startSpoiledRedis = async (t: TestContext): Promise<SpoiledRedis> => {
  const redis = await startRedis(t);
  let reply: ((client: Socket) => void) | undefined;
  let spoiled = 0;
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
    upstream.on("data", (chunk: Buffer) => client.write(chunk));
    upstream.on("error", () => client.destroy());
    client.on("error", () => upstream.destroy()).on("close", () => upstream.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return {
    url: `redis://127.0.0.1:${address.port}`,
    spoil: (next) => {
      reply = next;
    },
    spoiled: () => spoiled,
  };
};
