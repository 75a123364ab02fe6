import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Lifespan } from "./redis.ts";

/** A TCP proxy that can be slow. */
export interface SlowProxy {
  readonly port: number;
  /** The time by which the target's replies are late. It can be changed. */
  delayMs: number;
}

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
    client.pipe(target);
    // Later bytes are never sent before earlier ones.
    let dueMs = 0;
    target.on("data", (bytes) => {
      const nowMs = performance.now();
      dueMs = Math.max(dueMs, nowMs + proxy.delayMs);
      setTimeout(() => client.writable && client.write(bytes), dueMs - nowMs);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    for (const socket of sockets) {
      socket.destroy();
    }
    server.close();
  });
  const proxy: SlowProxy = { port: (server.address() as AddressInfo).port, delayMs: 0 };
  return proxy;
};
