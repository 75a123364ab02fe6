import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Lifespan } from "./redis.ts";

/** A host name that can lead to another server: new connections go there, and the open ones stay. */
export interface MovingName {
  readonly url: string;
  move(port: number): void;
}

/** Starts a Redis URL that leads to this port. It ends with the test. */
export const startMovingName = async (t: Lifespan, port: number): Promise<MovingName> => {
  const sockets = new Set<Socket>();
  let target = port;
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket));
    return socket;
  };
  const server = createServer((socket) => {
    const other = track(connect(target, "127.0.0.1"));
    track(socket).pipe(other).pipe(socket);
    socket.on("close", () => other.destroy());
    other.on("close", () => socket.destroy());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    for (const socket of sockets) {
      socket.destroy();
    }
    server.close();
  });
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    move: (next) => {
      target = next;
    },
  };
};
