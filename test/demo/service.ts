import { type RunningCommand, startCommand } from "../support/servers/command.ts";
import type { Ports } from "./ports.ts";

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

/** The process of forebay. */
export interface Service {
  readonly url: string;
  readonly opsUrl: string;
  /** Ends the process by SIGTERM, and starts another one with the same folder. Resolves when it is ready. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

const configOf = ({ ownUrl, backupUrl, feedUrl, historyUrl, ports, dataDir }: ServiceOptions) => ({
  chains: [
    {
      ...{ name: "devnet", forks: "prague" as const, blockTimeMs: 2_000 },
      nodes: [
        { name: "own", url: ownUrl },
        { name: "backup", url: backupUrl, priority: 1 },
      ],
      pending: { feeds: [feedUrl] },
      // anvil seals a block with another random value than its pending block has.
      quirks: { anvilDepositNonce: true },
      // Both nodes belong to the demo. So traces of the blocks that a restart missed are trusted at once.
      state: { waitMs: 1_000 },
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
  server: { ...ports, drainDelayMs: 0, dataDir },
});

const portOf = (url: string): number => Number(new URL(url).port);

/** Starts forebay as its command does. */
export const startService = async (options: ServiceOptions): Promise<Service> => {
  let current: RunningCommand | undefined;
  let end = async (): Promise<void> => undefined;
  const lifespan = {
    after: (next: () => Promise<void>): void => {
      end = next;
    },
  };
  let { ports } = options;
  const start = async (): Promise<RunningCommand> => {
    current = await startCommand(lifespan, configOf({ ...options, ports }));
    // They stay the same over a restart.
    ports = { port: portOf(current.url), opsPort: portOf(current.opsUrl) };
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
