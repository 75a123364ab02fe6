import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";

/** Lets a server listen on a free port of this machine. Returns the port. */
export const listen = async (server: Server): Promise<number> => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
};

/** Returns a port on which nobody listens. */
export const freePort = async (): Promise<number> => {
  const server = createServer();
  const port = await listen(server);
  server.close();
  await once(server, "close");
  return port;
};
