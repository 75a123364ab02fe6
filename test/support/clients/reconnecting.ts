import { connect } from "node:net";

const BODY = '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}';
const REQUEST = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;

const ANSWERED = "HTTP/1.1 200 OK";

/** Sends requests on one connection until a response closes it. Returns the last status line, or the code of the error. */
const useConnection = (port: number, onAnswer: () => void): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (outcome: string): void => {
      resolve(outcome);
      socket.destroy();
    };
    socket.write(REQUEST);
    socket.on("data", (bytes) => {
      const text = String(bytes);
      if (!text.startsWith(ANSWERED)) {
        end(text.split("\r\n", 1)[0] ?? "");
        return;
      }
      onAnswer();
      if (/\r\nconnection: close\r\n/i.test(text)) {
        end(ANSWERED);
      } else {
        socket.write(REQUEST);
      }
    });
    socket.once("error", (error: NodeJS.ErrnoException) => end(String(error.code)));
    socket.once("close", () => end("closed"));
  });

/**
 * Sends requests from this many clients without a pause. A client that is asked to close its connection opens another.
 * Resolves when all have failed, with the codes of their errors. A server that drains well only refuses connections.
 */
export const askUntilRefused = async (port: number, clients: number, onAnswer: () => void): Promise<Set<string>> => {
  const askOn = async (): Promise<string> => {
    for (;;) {
      const outcome = await useConnection(port, onAnswer);
      if (outcome !== ANSWERED) {
        return outcome;
      }
    }
  };
  return new Set(await Promise.all(Array.from({ length: clients }, askOn)));
};
