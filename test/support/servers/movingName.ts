import { connect, createServer, type Socket } from "node:net";
import { listen } from "./ports.ts";
import type { Lifespan } from "./redis.ts";

/** A host name that can lead to another server: new connections go there, and the open ones stay. */
export interface MovingName {
  readonly url: string;
  move(port: number): void;
}

/** Starts a Redis URL that leads to this port. It ends with the test. */
export const startMovingName = async (t: Lifespan, first: number): Promise<MovingName> => {
  const sockets = new Set<Socket>();
  let target = first;
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
  const port = await listen(server);
  t.after(() => {
    for (const socket of sockets) {
      socket.destroy();
    }
    server.close();
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    move: (next) => {
      target = next;
    },
  };
};
