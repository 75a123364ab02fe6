import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import { freePort, hasNginx, startNginx } from "../bench/support/nginx.ts";
import { askUntilRefused } from "../support/clients/reconnecting.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { type Front, forwardTo, startFront } from "../support/fakes/front.ts";
import { type Replica, startReplica } from "../support/servers/replica.ts";

interface RollingOptions {
  readonly seconds?: number | undefined;
}

const LONG_REQUEST_MS = 20_000;
const IDLE_MS = 62_000;
const CONNECTIONS = 8;
const DIRECT_CLIENTS = 48;
const PAUSE_MS = 5;
const STEADY_MS = 2_000;

const body = (method: string, params: readonly unknown[]): string =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
const json = { "content-type": "application/json" };

/** The slow method. */
const SLOW_METHOD = "slow_read";

interface SlowFront extends Front {
  /** Resolves at the next call of the slow method. */
  asked(): Promise<void>;
}

/** Creates a server in front of a node. It forwards all methods except one, which it answers late. */
const createSlowFront = async (nodeUrl: string, delayMs: number): Promise<SlowFront> => {
  let waiting: (() => void)[] = [];
  const front = await startFront(async (body) => {
    if (!body.includes(`"${SLOW_METHOD}"`)) {
      return forwardTo(nodeUrl, body);
    }
    for (const resolve of waiting) {
      resolve();
    }
    waiting = [];
    await sleep(delayMs);
    return '{"jsonrpc":"2.0","id":1,"result":"done"}';
  });
  return { ...front, asked: () => new Promise((resolve) => waiting.push(resolve)) };
};

/** Whether a keep-alive connection answers a second request after `idleMs` without one. */
const reusedAfter = async (port: number, idleMs: number): Promise<boolean> => {
  const text = body("eth_chainId", []);
  const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n`;
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  const ask = async (): Promise<boolean> => {
    if (socket.destroyed) {
      return false;
    }
    socket.write(head + text);
    const [bytes] = await Promise.race([once(socket, "data"), once(socket, "close").then(() => [""])]);
    return String(bytes).startsWith("HTTP/1.1 200 ");
  };
  const first = await ask();
  await sleep(idleMs);
  const second = first && (await ask());
  socket.destroy();
  return second;
};

/**
 * Stops a replica whose clients connect to it without a load balancer, and send all the time.
 * Returns the ways in which their last connections ended: only a refused connection loses no request.
 */
const stopWithoutBalancer = async (nodeUrl: string): Promise<readonly string[]> => {
  const [port, opsPort] = await Promise.all([freePort(), freePort()]);
  const replica = await startReplica(nodeUrl, port, opsPort);
  const outcomes = askUntilRefused(port, DIRECT_CLIENTS, () => undefined);
  await sleep(STEADY_MS);
  replica.stop();
  await replica.ended;
  return [...(await outcomes)];
};

/**
 * Restarts two replicas behind nginx, one after the other, under steady load on keep-alive connections. No request fails.
 * A request of 20 s succeeds on a replica that is shutting down. A connection that was idle for 62 s is reused.
 * Clients without nginx get no reset when their replica ends.
 */
export const long = async ({ seconds }: RollingOptions) => {
  if (!hasNginx()) {
    return { name: "rolling", passed: false, reason: "no nginx (apt-get install nginx-light)" };
  }
  // A short run uses a shorter request and a shorter idle time.
  const share = seconds === undefined ? 1 : Math.min(1, seconds / 90);
  const node = await createFakeNode();
  const front = await createSlowFront(node.url, LONG_REQUEST_MS * share);
  const ports = await Promise.all([freePort(), freePort()]);
  const opsPorts = await Promise.all([freePort(), freePort()]);
  const start = (index: number): Promise<Replica> => startReplica(front.url, ports[index] ?? 0, opsPorts[index] ?? 0);
  const replicas = await Promise.all([start(0), start(1)]);
  const nginx = await startNginx(...ports);
  const url = `http://127.0.0.1:${nginx.port}/`;
  const dispatcher = new Agent({ connections: CONNECTIONS, headersTimeout: 60_000 });

  const failures: string[] = [];
  let answered = 0;
  let stopped = false;
  const askOnce = async (worker: number, at: number): Promise<void> => {
    try {
      const params = [`0x${(worker * 1e6 + at).toString(16).padStart(40, "0")}`, "0x1"];
      const response = await request(url, {
        method: "POST",
        headers: json,
        body: body("eth_getBalance", params),
        dispatcher,
      });
      const text = await response.body.text();
      if (response.statusCode === 200 && text.includes('"result":"0x1"')) {
        answered++;
      } else {
        failures.push(`${response.statusCode} ${text.slice(0, 100)}`);
      }
    } catch (error) {
      failures.push(String(error));
    }
  };
  const load = Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, worker) => {
      for (let at = 0; !stopped; at++) {
        await askOnce(worker, at);
        await sleep(PAUSE_MS);
      }
    }),
  );

  const idle = reusedAfter(ports[1] ?? 0, IDLE_MS * share);
  await sleep(STEADY_MS);
  // Connect to each replica directly, so that the stopped replica is the one with the long request.
  const exits: (number | null)[] = [];
  const longRequests: string[] = [];
  const restart = async (index: number): Promise<void> => {
    const replica = replicas[index];
    if (replica === undefined) {
      return;
    }
    const asked = front.asked();
    const slow = request(`http://127.0.0.1:${ports[index]}/`, {
      method: "POST",
      headers: json,
      body: body(SLOW_METHOD, []),
    });
    await asked;
    replica.stop();
    const response = await slow;
    longRequests.push(`${response.statusCode} ${await response.body.text()}`);
    exits.push(await replica.ended);
    replicas[index] = await start(index);
    await sleep(STEADY_MS);
  };
  await restart(0);
  // Stop the second replica after its idle connection was used again.
  const idleReused = await idle;
  await restart(1);

  stopped = true;
  await load;
  await dispatcher.close();
  for (const replica of replicas) {
    replica.kill();
  }
  await nginx.end();
  const directOutcomes = await stopWithoutBalancer(node.url);
  await Promise.all([node.close(), front.close()]);
  const longSurvived = longRequests.length === 2 && longRequests.every((text) => text.includes('"result":"done"'));
  const withoutReset = directOutcomes.join() === "ECONNREFUSED";
  return {
    name: "rolling",
    passed: failures.length === 0 && longSurvived && idleReused && withoutReset && exits.every((code) => code === 0),
    answered,
    failed: failures.length,
    failures: failures.slice(0, 5),
    longRequests,
    longRequestSeconds: (LONG_REQUEST_MS * share) / 1000,
    idleReused,
    directOutcomes,
    idleSeconds: (IDLE_MS * share) / 1000,
    exits,
  };
};
