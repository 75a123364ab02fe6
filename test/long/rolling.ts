import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { hasNginx, startNginx } from "../bench/support/nginx.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { type RunningCommand, startCommand } from "../support/servers/command.ts";
import { freePort } from "../support/servers/ports.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import type { LongOptions } from "./support/longOptions.ts";

const LONG_REQUEST_MS = 20_000;
const IDLE_MS = 62_000;
const CONNECTIONS = 8;
const PAUSE_MS = 5;
const STEADY_MS = 2_000;
/** After a refused connection, nginx leaves a server out for this time. */
const LEFT_OUT_MS = 10_000;
/** The default. */
const DRAIN_DELAY_MS = 5_000;
/** The node answers this method late. */
const SLOW_METHOD = "slow_read";

/** Whether a keep-alive connection answers a second request after `idleMs` without one. */
const reusedAfter = async (port: number, idleMs: number): Promise<boolean> => {
  const text = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';
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

/** Reads on keep-alive connections until the signal is aborted. Returns the number of answers, and the failures. */
const readAlways = async (url: string, signal: AbortSignal) => {
  const failures: string[] = [];
  let answered = 0;
  const read = async (worker: number): Promise<void> => {
    for (let at = 0; !signal.aborted; at++) {
      const params = [`0x${(worker * 1e6 + at).toString(16).padStart(40, "0")}`, "0x1"];
      const answer = await rpc(url, "eth_getBalance", params).catch(String);
      if (typeof answer !== "string" && answer.status === 200 && answer.body.result === "0x1") {
        answered++;
      } else {
        failures.push(typeof answer === "string" ? answer : `${answer.status} ${answer.text.slice(0, 100)}`);
      }
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, worker) => read(worker)));
  return { answered, failures };
};

/**
 * Restarts two replicas behind nginx, one after the other, under steady load on keep-alive connections. No request fails.
 * A request of 20 s succeeds on a replica that is shutting down. A connection that was idle for 62 s is reused.
 */
export const long = async ({ seconds }: LongOptions) => {
  if (!hasNginx()) {
    return { name: "rolling", passed: false, reason: "no nginx (apt-get install nginx-light)" };
  }
  // A short run uses a shorter request and a shorter idle time.
  const share = seconds === undefined ? 1 : Math.min(1, seconds / 90);
  return withLifespan(async (t) => {
    const node = await createFakeNode({ handlers: { [SLOW_METHOD]: () => "done" } });
    t.after(() => node.close());
    Object.assign(node.faults, { methods: [SLOW_METHOD], answer: "hang" });
    const ports = [await freePort(), await freePort()];
    const start = (index: number): Promise<RunningCommand> =>
      startCommand(t, {
        chains: [{ name: "chain", nodes: [{ url: node.url }] }],
        server: { port: ports[index] ?? 0, drainDelayMs: DRAIN_DELAY_MS },
      });
    const replicas = await Promise.all([start(0), start(1)]);
    const nginx = await startNginx(...ports);
    t.after(() => nginx.end());
    const stopping = new AbortController();
    const reading = readAlways(`http://127.0.0.1:${nginx.port}/`, stopping.signal);
    const idle = reusedAfter(ports[1] ?? 0, IDLE_MS * share);
    await sleep(STEADY_MS);

    // Asks the replica itself, so that the stopped one has the long request.
    const restart = async (index: 0 | 1) => {
      const { url, signal, ended } = replicas[index];
      const asked = node.asked(SLOW_METHOD);
      const slow = rpc(url, SLOW_METHOD, []);
      await asked;
      signal("SIGTERM");
      setTimeout(node.release, LONG_REQUEST_MS * share);
      const { status, text } = await slow;
      const exit = await ended;
      replicas[index] = await start(index);
      await sleep(LEFT_OUT_MS);
      return { status, text, exit };
    };
    const first = await restart(0);
    // Stop the second replica after its idle connection was used again.
    const idleReused = await idle;
    const restarts = [first, await restart(1)];
    stopping.abort();
    const { answered, failures } = await reading;
    const haveSurvived = restarts.every(({ text, exit }) => text.includes('"result":"done"') && exit === 0);
    return {
      name: "rolling",
      passed: failures.length === 0 && haveSurvived && idleReused,
      ...{ answered, failed: failures.length, failures: failures.slice(0, 5), restarts, idleReused },
      longRequestSeconds: (LONG_REQUEST_MS * share) / 1_000,
      idleSeconds: (IDLE_MS * share) / 1_000,
    };
  });
};
