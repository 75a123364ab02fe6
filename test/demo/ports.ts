import { createServer } from "node:net";
import { listen } from "../../src/core/listen.ts";

/** The ports of forebay. 0: any free one. */
export interface Ports {
  readonly port: number;
  readonly opsPort: number;
}

const HOST = "127.0.0.1";
const OPS_OFFSET = 1_000;

/** Rejects with an error that names the port if it is in use. */
const ensureFree = async (port: number): Promise<void> => {
  const server = createServer();
  await listen(server, { host: HOST, port, setting: "--port" });
  await new Promise((resolve) => server.close(resolve));
};

/** Returns the ports of forebay. Rejects if one is in use. */
export const findPorts = async (port: number): Promise<Ports> => {
  const opsPort = port === 0 ? 0 : port + OPS_OFFSET;
  await ensureFree(port);
  await ensureFree(opsPort);
  return { port, opsPort };
};
