import { once } from "node:events";
import { connect } from "node:net";

/** Many WebSocket clients that subscribe to pendingLogs and read. They parse no frames, so that the bench measures the server. */
const [, , port, connections] = process.argv;

const SUBSCRIBE = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["pendingLogs"]}');
/** A client's frame, which is masked (RFC 6455, section 5.3). A mask of zeros does not change the text. */
const FRAME = Buffer.concat([Buffer.from([0x81, 0x80 | SUBSCRIBE.length, 0, 0, 0, 0]), SUBSCRIBE]);
const HANDSHAKE = [
  "GET / HTTP/1.1",
  "Host: bench",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "\r\n",
].join("\r\n");

for (let at = 0; at < Number(connections); at++) {
  const socket = connect(Number(port), "127.0.0.1");
  socket.write(HANDSHAKE);
  await once(socket, "data");
  socket.write(FRAME);
  await once(socket, "data");
  socket.resume();
}
process.send?.("connected");
process.on("disconnect", () => process.exit());
