import { once } from "node:events";
import { type WebSocket, WebSocketServer } from "ws";

/** A feed that sends only the messages of a test. */
export interface FakeFeed {
  readonly url: string;
  /** Resolves with the next connection. */
  connected(): Promise<WebSocket>;
  /** Number of connections so far. */
  readonly connections: number;
  send(frame: object | string | Uint8Array): void;
  disconnect(): void;
  close(): Promise<void>;
  /** Listens again, on the same port, after `close`. */
  open(): Promise<void>;
}

export interface FakeFeedOptions {
  /** Pings are answered; otherwise the socket stays open and mute. */
  readonly autoPong?: boolean;
}

export const createFakeFeed = async (options: FakeFeedOptions = {}): Promise<FakeFeed> => {
  let connections = 0;
  const listen = async (port: number): Promise<WebSocketServer> => {
    const started = new WebSocketServer({ port, host: "127.0.0.1", autoPong: options.autoPong ?? true });
    started.on("connection", () => connections++);
    await once(started, "listening");
    return started;
  };
  let server = await listen(0);
  let isOpen = true;
  const address = server.address();
  if (address === null || typeof address === "string") {
    throw new Error("no port");
  }
  const isBytes = (frame: object): frame is Uint8Array => frame instanceof Uint8Array;
  return {
    url: `ws://127.0.0.1:${address.port}`,
    connected: async () => (await once(server, "connection"))[0],
    get connections() {
      return connections;
    },
    send: (frame) => {
      const data = typeof frame === "string" || isBytes(frame) ? frame : JSON.stringify(frame);
      for (const client of server.clients) {
        client.send(data);
      }
    },
    disconnect: () => {
      for (const client of server.clients) {
        client.terminate();
      }
    },
    open: async () => {
      server = await listen(address.port);
      isOpen = true;
    },
    close: async () => {
      if (!isOpen) {
        return;
      }
      isOpen = false;
      for (const client of server.clients) {
        client.terminate();
      }
      server.close();
      await once(server, "close");
    },
  };
};
