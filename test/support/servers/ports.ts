import { randomInt } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";

/** Lets a server listen on a free port of this machine. Returns the port. */
export const listen = async (server: Server): Promise<number> => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
};

/**
 * Below the ports that the kernel gives to connections and servers of other tests, which could take one before its server listens.
 * Those of Redis and of its clusters are below these.
 */
const PORTS = { first: 31_000, end: 32_700 };

/** Returns a port on which nobody listens, for a server that cannot choose one itself. */
export const freePort = async (ports = PORTS): Promise<number> => {
  const port = randomInt(ports.first, ports.end);
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    // Another server listens on it.
    return freePort(ports);
  }
  server.close();
  await once(server, "close");
  return port;
};
