import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../support/clients/until.ts";
import { untilReady } from "../../support/servers/command.ts";
import { type ConfiguredServer, startConfigured } from "./forebay.ts";
import { startWalletClients, type WalletClients } from "./walletClients.ts";
import {
  type Counts,
  describeWallets,
  readStateCounts,
  unitsIn,
  type WalletFigures,
  type WalletSample,
} from "./walletFigures.ts";
import type { NodesUrls } from "./walletNode.ts";

/** What happens to a process with a settled chain. */
export type RestartKind = "SIGTERM" | "SIGKILL" | "new machine" | "reload" | "nothing kept";

/** Where the service stores what it knows. */
interface KeptIn {
  readonly dataDir?: string | undefined;
  readonly redis?: string | undefined;
}

export interface RestartOptions extends KeptIn {
  readonly kind: RestartKind;
  readonly urls: NodesUrls;
  readonly blockMs: number;
  readonly wallets: number;
  readonly pools: number;
  readonly quotesPerSecond: number;
  /** The time of traffic before the restart. The end of it is measured. */
  readonly settleMs: number;
  readonly measuredMs: number;
  /** The ends of the windows after the restart, in milliseconds from ready on. */
  readonly windowsMs: readonly number[];
  /** Calls to the nodes of this service so far, by method. */
  countSent(): Promise<Counts>;
}

export interface RestartFigures {
  readonly settled: WalletFigures;
  /** Provider units from the end of the old process, or from the reload, until the service is ready. */
  readonly unitsUntilReady: number;
  readonly windows: readonly WalletFigures[];
  /** Calls of clients that failed. */
  readonly errors: number;
}

/** Names of the nodes in front of which one service runs: its node, and the one that a reload adds. */
export const nodesOf = (kind: RestartKind): readonly string[] => (kind === "reload" ? [kind, "added"] : [kind]);

const RELOADED = /^forebay_config_reloads_total\{.*outcome="applied".*\} [1-9]/m;

const configOf = ({ urls, blockMs }: RestartOptions, nodes: readonly string[], { dataDir, redis }: KeptIn) => ({
  chains: [
    {
      ...{ name: "chain", blockTimeMs: blockMs, forks: "prague", state: { source: "trace" } },
      nodes: nodes.map((name, index) => ({ name: `node${index}`, url: urls[name]?.url })),
    },
  ],
  ...(redis !== undefined && { cache: { redis } }),
  server: { port: 0, opsPort: 0, drainDelayMs: 0, ...(dataDir !== undefined && { dataDir }) },
  log: { level: "info" },
});

/** Starts a process, and waits until it is ready. */
const startReady = async (config: object): Promise<ConfiguredServer> => {
  const server = await startConfigured(config);
  await untilReady(server);
  return server;
};

/** The process of one service, which is replaced by another one. */
class RestartedService {
  readonly #options: RestartOptions;
  #server: ConfiguredServer;
  #clients: WalletClients;
  #errors = 0;

  constructor(options: RestartOptions, server: ConfiguredServer) {
    this.#options = options;
    this.#server = server;
    this.#clients = this.#startClients();
  }

  get errors(): number {
    return this.#errors + this.#clients.errors;
  }

  /** Returns the figures of the time from now on. */
  async measure(forMs: number): Promise<WalletFigures> {
    const before = await this.#sample();
    await sleep(forMs);
    return describeWallets(before, await this.#sample());
  }

  async restart(): Promise<void> {
    const { kind, dataDir, redis } = this.#options;
    if (kind === "reload") {
      this.#server.configure(configOf(this.#options, nodesOf(kind), { dataDir }));
      const isReloaded = async () => RELOADED.test(await (await fetch(`${this.#server.opsUrl}/metrics`)).text());
      await until(isReloaded, "the configuration is reloaded");
      return;
    }
    await this.#clients.stop();
    this.#errors += this.#clients.errors;
    await this.#server.stop(kind === "SIGKILL" ? kind : "SIGTERM");
    this.#server = await startReady(configOf(this.#options, [kind], { dataDir, redis }));
    this.#clients = this.#startClients();
  }

  async end(): Promise<void> {
    await this.#clients.stop();
    await this.#server.end();
  }

  #startClients(): WalletClients {
    const { wallets, pools, quotesPerSecond } = this.#options;
    return startWalletClients({ url: `http://127.0.0.1:${this.#server.port}`, wallets, pools, quotesPerSecond });
  }

  async #sample(): Promise<WalletSample> {
    const [sent, counts] = await Promise.all([this.#options.countSent(), readStateCounts(this.#server.opsUrl)]);
    return { asked: Object.fromEntries(this.#clients.calls), sent, ...counts };
  }
}

/** Lets the traffic of wallets settle on a service, restarts it, and counts the provider units before and after. */
export const measureRestart = async (options: RestartOptions): Promise<RestartFigures> => {
  const { kind, dataDir, redis, settleMs, measuredMs, windowsMs, countSent } = options;
  const server = await startReady(configOf(options, [kind], { dataDir, redis }));
  const service = new RestartedService(options, server);
  try {
    await sleep(settleMs - measuredMs);
    const settled = await service.measure(measuredMs);
    const before = unitsIn(await countSent());
    await service.restart();
    const unitsUntilReady = unitsIn(await countSent()) - before;
    const windows: WalletFigures[] = [];
    for (const [index, endMs] of windowsMs.entries()) {
      windows.push(await service.measure(endMs - (windowsMs[index - 1] ?? 0)));
    }
    return { settled, unitsUntilReady, windows, errors: service.errors };
  } finally {
    await service.end();
  }
};
