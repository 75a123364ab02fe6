import { createServer } from "node:net";
import { listen } from "../../src/core/listen.ts";
import { type Processes, startProcesses } from "../support/servers/processes.ts";

export interface ServiceOptions {
  /** URLs of the two nodes of the chain, and of its feed. */
  readonly ownUrl: string;
  readonly backupUrl: string;
  readonly feedUrl: string;
  /** URL of the node with a long chain. */
  readonly historyUrl: string;
  readonly ports: Ports;
  readonly dataDir: string;
}

interface Ports {
  readonly port: number;
  readonly opsPort: number;
}

/** The process of forebay. */
export interface Service {
  readonly url: string;
  readonly opsUrl: string;
  /** Ends the process by SIGTERM, and starts another one with the same folder. Resolves when it is ready. */
  restart(): Promise<void>;
  close(): Promise<void>;
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

const configOf = ({ ownUrl, backupUrl, feedUrl, historyUrl, ports, dataDir }: ServiceOptions) => ({
  chains: [
    {
      ...{ name: "devnet", forks: "prague" as const, blockTimeMs: 2_000 },
      nodes: [
        { name: "own", url: ownUrl },
        { name: "backup", url: backupUrl, priority: 1 },
      ],
      pending: { feeds: [feedUrl] },
      // Both nodes belong to the demo. So traces of the blocks that a restart missed are trusted at once.
      state: { probation: { blocks: 0, values: 0 }, waitMs: 1_000 },
    },
    {
      ...{
        name: "history",
        blockTimeMs: 12_000,
        pending: { mode: "node" as const },
        state: { follow: false as const },
      },
      nodes: [{ name: "provider", url: historyUrl }],
      // The stand-in's headers have no hashes of their own.
      verify: "off" as const,
    },
  ],
  server: { ...ports, processes: 1, drainDelayMs: 0, dataDir },
});

/** Starts forebay as its command does. */
export const startService = async (options: ServiceOptions): Promise<Service> => {
  let current: Processes | undefined;
  let end = async (): Promise<void> => undefined;
  const lifespan = {
    after: (next: () => Promise<void>): void => {
      end = next;
    },
  };
  const start = async (): Promise<Processes> => {
    current = await startProcesses(lifespan, configOf(options));
    return current;
  };
  process.on("exit", () => current?.signal("SIGKILL"));
  const { url, opsUrl } = await start().catch(async (error: unknown) => {
    await end();
    throw error;
  });
  return {
    url,
    opsUrl,
    restart: async () => {
      current?.signal("SIGTERM");
      await current?.ended;
      await end();
      await start();
    },
    close: () => end(),
  };
};
