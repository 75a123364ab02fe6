import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";
import { encodeFrame, type FeedEncoding, type Flashblock } from "./flashblock.ts";

/** Faults of the next messages. Each applies to a number of messages. */
export interface FeedFaults {
  /** Does not send the messages, so that a listener sees a gap. */
  drop(messages?: number): void;
  /** Sends messages twice. */
  repeat(messages?: number): void;
  /** Sends messages after a delay. Later messages wait too, as on one connection. */
  delay(delayMs: number, messages?: number): void;
  /** Changes the next message. */
  alter(change: (message: Flashblock) => Flashblock): void;
  /** Sends a frame unchanged to all current listeners. */
  inject(frame: string | Uint8Array): void;
  /** Breaks all connections. */
  disconnect(): void;
}

export interface FeedServer {
  readonly url: string;
  readonly faults: FeedFaults;
  send(message: Flashblock): void;
  close(): Promise<void>;
}

export const createFeedServer = async (encoding: FeedEncoding): Promise<FeedServer> => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false });
  await once(server, "listening");
  server.on("connection", (client) => client.on("error", () => client.terminate()));
  const { port } = server.address() as AddressInfo;
  const pending = new Set<NodeJS.Timeout>();
  const changes: ((message: Flashblock) => Flashblock)[] = [];
  let [drops, repeats, delays, delayMs] = [0, 0, 0, 0];
  let queue: (string | Uint8Array)[] = [];

  const broadcast = (frame: string | Uint8Array) => {
    for (const client of server.clients) {
      client.send(frame);
    }
  };
  const flush = () => {
    for (const frame of queue) {
      broadcast(frame);
    }
    queue = [];
  };
  const deliver = (frame: string | Uint8Array) => {
    if (pending.size > 0) {
      queue.push(frame);
    } else {
      broadcast(frame);
    }
  };

  return {
    url: `ws://127.0.0.1:${port}`,
    faults: {
      drop: (messages = 1) => {
        drops += messages;
      },
      repeat: (messages = 1) => {
        repeats += messages;
      },
      delay: (ms, messages = 1) => {
        delays += messages;
        delayMs = ms;
      },
      alter: (change) => changes.push(change),
      inject: broadcast,
      disconnect: () => {
        for (const client of server.clients) {
          client.terminate();
        }
      },
    },
    send: (message) => {
      if (drops > 0) {
        drops--;
        return;
      }
      const frame = encodeFrame(changes.shift()?.(message) ?? message, encoding);
      if (delays > 0) {
        delays--;
        const timer = setTimeout(() => {
          pending.delete(timer);
          if (pending.size === 0) {
            flush();
          }
        }, delayMs);
        pending.add(timer);
      }
      deliver(frame);
      if (repeats > 0) {
        repeats--;
        deliver(frame);
      }
    },
    close: async () => {
      for (const timer of pending) {
        clearTimeout(timer);
      }
      for (const client of server.clients) {
        client.terminate();
      }
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
