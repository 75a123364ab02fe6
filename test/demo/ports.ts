import { createServer } from "node:net";
import { listen } from "../../src/core/listen.ts";

/** The ports of forebay. */
export interface Ports {
  readonly port: number;
  readonly opsPort: number;
}

const HOST = "127.0.0.1";
const OPS_OFFSET = 1_000;

/** Returns the port if it is free, or any free one for 0. Rejects with an error that names the port. */
const findFree = async (port: number): Promise<number> => {
  const server = createServer();
  await listen(server, { host: HOST, port, setting: "--port" });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : port;
};

/** Returns the ports of forebay, which stay the same over a restart. Rejects if one is in use. */
export const findPorts = async (port: number): Promise<Ports> => ({
  port: await findFree(port),
  opsPort: await findFree(port === 0 ? 0 : port + OPS_OFFSET),
});
