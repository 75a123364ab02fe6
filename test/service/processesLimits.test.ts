import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import type { z } from "zod";
import type { configSchema } from "../../src/config/schema.ts";
import { callOverNewConnection } from "../support/clients/freshConnection.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { connectSocket, type SocketClient } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { startProcesses } from "../support/servers/processes.ts";

type Input = z.input<typeof configSchema>;

const sha256 = (key: string): string => createHash("sha256").update(key).digest("hex");

/** Forebay with two serving processes. */
const start = async (t: TestContext, more: Partial<Input>, chain: Partial<Input["chains"][number]> = {}) => {
  const node = await createFakeNode();
  t.after(() => node.close());
  return startProcesses(t, { chains: [{ name: "chain", nodes: [{ url: node.url }], ...chain }], ...more });
};

const refusals = (opsUrl: string, reason: string): Promise<number> =>
  metric(opsUrl, "forebay_access_refused_total", `reason="${reason}"`);

describe("limits of several processes", { concurrency: 2 }, () => {
  test("limits per address and per key hold for all processes together, over one connection and over many", async (t) => {
    const { url, opsUrl } = await start(t, {
      access: {
        limitPerAddress: { calls: 5, seconds: 600 },
        trustedProxies: ["127.0.0.1"],
      },
    });
    const overOne: number[] = [];
    for (let call = 0; call < 8; call++) {
      overOne.push((await rpc(url, "eth_chainId", [], { "x-forwarded-for": "192.0.2.1" })).status);
    }
    assert.deepEqual(overOne, [200, 200, 200, 200, 200, 429, 429, 429]);
    const overMany = await Promise.allSettled(
      Array.from({ length: 8 }, () => callOverNewConnection(url, "eth_chainId")),
    );
    assert.equal(overMany.filter(({ status }) => status === "fulfilled").length, 5);
    assert.equal(await refusals(opsUrl, "rate"), 6);

    const keyed = await start(t, {
      access: { keys: [{ name: "wallet", sha256: sha256("k1"), limit: { calls: 5, seconds: 600 } }] },
    });
    const byKey = await Promise.allSettled(
      Array.from({ length: 8 }, () => callOverNewConnection(`${keyed.url}/chain/k1`, "eth_chainId")),
    );
    assert.equal(byKey.filter(({ status }) => status === "fulfilled").length, 5);
  });

  test("connections of one address are limited for all processes together, and those of a killed process are released", async (t) => {
    const forebay = await start(t, { server: { maxConnectionsPerAddress: 5 } });
    const port = Number(new URL(forebay.url).port);
    const open = async (): Promise<Socket> => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined);
      await once(socket, "connect");
      return socket;
    };
    /** Opens connections, and waits until forebay has counted them. */
    const openAll = async (count: number, refused: number): Promise<Socket[]> => {
      const before = await refusals(forebay.opsUrl, "connections");
      const sockets = await Promise.all(Array.from({ length: count }, open));
      t.after(() => sockets.forEach((socket) => void socket.destroy()));
      await until(async () => (await refusals(forebay.opsUrl, "connections")) === before + refused, "they are counted");
      return sockets;
    };
    const statusOf = async (socket: Socket): Promise<string> => {
      const body = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}';
      const answered = once(socket, "data");
      socket.write(
        `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      return String((await answered)[0]).slice("HTTP/1.1 ".length, "HTTP/1.1 200".length);
    };
    const sockets = await openAll(8, 3);
    const statuses = await Promise.all(sockets.map(statusOf));
    assert.deepEqual(statuses.toSorted(), ["200", "200", "200", "200", "200", "429", "429", "429"]);

    const [killed] = await forebay.servingPids();
    assert.ok(killed !== undefined);
    process.kill(killed, "SIGKILL");
    await until(async () => (await metric(forebay.opsUrl, "forebay_processes ")) === 2, "the process is replaced");
    sockets.forEach((socket) => void socket.destroy());
    await until(async () => {
      const socket = await open();
      t.after(() => void socket.destroy());
      return (await statusOf(socket)) === "200";
    }, "closed connections are released");
    // One place is in use.
    await openAll(5, 1);
  });

  test("WebSockets of one address are limited for all processes together", async (t) => {
    const { url, opsUrl } = await start(t, { server: { maxWebSocketsPerAddress: 3 } });
    const opened: SocketClient[] = [];
    t.after(() => Promise.all(opened.map((socket) => socket.close())));
    const open = async (): Promise<boolean> => {
      const socket = await connectSocket(url).catch((error: Error) => error.message);
      if (typeof socket === "string") {
        assert.match(socket, /429/);
        return false;
      }
      opened.push(socket);
      return true;
    };
    const outcomes: boolean[] = [];
    for (let connection = 0; connection < 5; connection++) {
      outcomes.push(await open());
    }
    assert.deepEqual(outcomes, [true, true, true, false, false]);
    assert.equal(await refusals(opsUrl, "webSockets"), 2);
    await opened.pop()?.close();
    await until(open, "the place of a closed WebSocket is free");
  });

  test("filters of one client are limited for all processes together", async (t) => {
    const { url } = await start(t, {}, { logs: { maxFilters: 3 } });
    const outcomes = [];
    for (let filter = 0; filter < 5; filter++) {
      const made = await callOverNewConnection(url, "eth_newBlockFilter").catch(({ message }: Error) => message);
      outcomes.push(/too many filters|-32/.test(String(made)) ? "refused" : "made");
    }
    assert.deepEqual(outcomes, ["made", "made", "made", "refused", "refused"]);
  });
});
