import { connect } from "node:net";

const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';
const REQUEST = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;
const ANSWERED = "HTTP/1.1 200 OK";

/** What clients of one port saw. */
export interface SharedPortUse {
  connections: number;
  answered: number;
  /** New connections that ended before their first response. A client connects again. */
  resets: number;
  /** Failures of requests on connections that were open, and responses that are no answer. */
  readonly failures: string[];
}

interface SharedPortLoad {
  readonly clients: number;
  /** Requests on one connection. */
  readonly requests: number;
  /** Whether the clients end. They end their connections first. */
  isOver(use: SharedPortUse): boolean;
  onAnswer?(use: SharedPortUse): void;
}

/** Sends requests on one connection, until one is the last or the response closes it. Returns a failure. */
const useConnection = (
  port: number,
  use: SharedPortUse,
  { requests, onAnswer }: Pick<SharedPortLoad, "requests" | "onAnswer">,
): Promise<string | undefined> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let answers = 0;
    let hasEnded = false;
    const end = (failure?: string): void => {
      if (hasEnded) {
        return;
      }
      hasEnded = true;
      if (failure !== undefined && answers === 0 && !failure.startsWith("HTTP")) {
        use.resets++;
      } else if (failure !== undefined) {
        use.failures.push(failure);
      }
      socket.destroy();
      resolve(failure);
    };
    use.connections++;
    socket.write(REQUEST);
    socket.on("data", (bytes) => {
      const text = String(bytes);
      if (!text.startsWith(ANSWERED)) {
        end(text.split("\r\n", 1)[0] ?? "");
        return;
      }
      answers++;
      use.answered++;
      onAnswer?.(use);
      if (answers === requests || /\r\nconnection: close\r\n/i.test(text)) {
        end();
      } else {
        socket.write(REQUEST);
      }
    });
    socket.once("error", (error: NodeJS.ErrnoException) => end(String(error.code)));
    socket.once("close", () => end("closed"));
  });

const newUse = (): SharedPortUse => ({ connections: 0, answered: 0, resets: 0, failures: [] });

/** Sends requests without a pause to the processes that share a port, on one new connection after the other. */
export const useSharedPort = async (port: number, load: SharedPortLoad): Promise<SharedPortUse> => {
  const use = newUse();
  const ask = async (): Promise<void> => {
    while (!load.isOver(use)) {
      await useConnection(port, use, load);
    }
  };
  await Promise.all(Array.from({ length: load.clients }, ask));
  return use;
};

/**
 * Sends requests from this many clients without a pause. A client that is asked to close its connection opens another.
 * Resolves when all have failed, with their failures. A server that drains well only refuses connections.
 */
export const askUntilRefused = async (port: number, clients: number, onAnswer: () => void): Promise<Set<string>> => {
  const askOn = async (): Promise<string> => {
    for (;;) {
      const failure = await useConnection(port, newUse(), { requests: Number.POSITIVE_INFINITY, onAnswer });
      if (failure !== undefined) {
        return failure;
      }
    }
  };
  return new Set(await Promise.all(Array.from({ length: clients }, askOn)));
};
