import { connect, createServer, type Socket } from "node:net";
import { listen } from "./ports.ts";
import type { Lifespan } from "./redis.ts";

/** A TCP proxy that can be slow. */
export interface SlowProxy {
  readonly port: number;
  /** The time by which the target's replies are late. It can be changed. */
  delayMs: number;
  /** The same for what the client sends. */
  clientDelayMs: number;
}

/** Later bytes are never sent before earlier ones. */
const forward = (from: Socket, to: Socket, delayMs: () => number): void => {
  let dueMs = 0;
  from.on("data", (bytes) => {
    const nowMs = performance.now();
    dueMs = Math.max(dueMs, nowMs + delayMs());
    setTimeout(() => to.writable && to.write(bytes), dueMs - nowMs);
  });
};

/** Starts a proxy in front of a port of this machine. It ends with the test. */
export const startSlowProxy = async (t: Lifespan, targetPort: number): Promise<SlowProxy> => {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket, other: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => other.destroy());
    socket.on("close", () => {
      sockets.delete(socket);
      other.destroy();
    });
  };
  const server = createServer((client) => {
    const target = connect(targetPort, "127.0.0.1");
    keep(client, target);
    keep(target, client);
    forward(client, target, () => proxy.clientDelayMs);
    forward(target, client, () => proxy.delayMs);
  });
  const port = await listen(server);
  t.after(() => {
    for (const socket of sockets) {
      socket.destroy();
    }
    server.close();
  });
  const proxy: SlowProxy = { port, delayMs: 0, clientDelayMs: 0 };
  return proxy;
};
