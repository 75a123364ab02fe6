import { extname } from "node:path";
import { RateLimits } from "../access/rateLimits.ts";
import { createOpsServer, type OpsOptions } from "../admin/opsServer.ts";
import type { Value } from "../admin/statusValues.ts";
import { ChainHost } from "../cluster/chainHost.ts";
import { MachineLimits } from "../cluster/machineLimits.ts";
import { ProcessCounts, valuesOf } from "../cluster/processCounts.ts";
import { ProcessGroup } from "../cluster/processGroup.ts";
import type { Config } from "../config/schema.ts";
import type { HttpServerOptions } from "../http/httpServer.ts";
import { OPEN_PART } from "../storage/dataStorage.ts";
import { aggregateMetrics } from "../telemetry/promClient.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { UsageLedger } from "../telemetry/usageLedger.ts";
import { createChainRuntime } from "./chainRuntime.ts";
import { createFollowedSources } from "./followedSources.ts";
import { createProcess, type Forebay } from "./main.ts";
import type { ClientPort, ProcessRole } from "./processRole.ts";
import { chainKey, countProcesses, shareOfMain } from "./processShare.ts";
import { openStorage } from "./shared.ts";

/** The entry has the extension of this file: `.ts` in the repository, `.js` in the package. */
const ENTRY = new URL(`servingEntry${extname(import.meta.url)}`, import.meta.url);

/** Time for the serving processes to leave a chain that a reload has replaced, after its last request. */
const LEAVE_GRACE_MS = 5_000;

class MainProcess implements ProcessRole {
  readonly #processes: number;
  readonly #config: Config;
  readonly #telemetry: Telemetry;
  readonly #hosts = new Map<string, ChainHost>();
  readonly group: ProcessGroup;
  readonly usages: UsageLedger;
  readonly openStorage: ProcessRole["openStorage"];
  readonly #limits: MachineLimits;
  readonly #counts: ProcessCounts;
  #status: HttpServerOptions["status"];

  constructor(config: Config, telemetry: Telemetry) {
    this.#config = config;
    this.#processes = countProcesses(config);
    this.#telemetry = telemetry;
    this.#counts = new ProcessCounts(telemetry.metrics.processResponses);
    this.usages = new UsageLedger({ topKeys: config.usage.topKeys, metrics: telemetry.metrics });
    this.#limits = new MachineLimits(new RateLimits({ telemetry }));
    const storage = openStorage(config, telemetry);
    this.openStorage = () => storage;
    this.group = new ProcessGroup({
      entry: ENTRY,
      processes: this.#processes,
      config,
      status: async () => (await this.#status?.()) ?? "{}",
      host: (chain) => this.#hosts.get(chain),
      connect: (channel) => {
        channel.offer({
          addUsage: (changes) => this.usages.add(changes),
          spentUnits: (budgets) => this.usages.budgets.spent(budgets),
          readEntries: (keys) => (storage?.isOpen(OPEN_PART) ? storage.read(keys) : undefined),
          writeEntries: (changes) => storage?.write(changes),
        });
        return this.#limits.offerTo(channel);
      },
      telemetry,
    });
  }

  share(config: Config): Config {
    return shareOfMain(config, this.#processes);
  }

  readonly createChain: ProcessRole["createChain"] = (config, shared) => {
    const chain = createChainRuntime(config, shared, (...args) => {
      const key = chainKey(args[0]);
      const sources = createFollowedSources(...args);
      const host = this.#createHost(sources);
      this.#hosts.set(key, host);
      const close = async (): Promise<void> => {
        await host.untilUnused(this.#config.server.drainTimeoutMs + LEAVE_GRACE_MS);
        if (this.#hosts.get(key) === host) {
          this.#hosts.delete(key);
        }
        host.close();
        await sources.close();
      };
      return { ...sources, close };
    });
    return chain;
  };

  async readServingMetrics(): Promise<(name: string) => readonly Value[]> {
    const serving = await this.group.metrics();
    return (name) => [...serving.values()].flatMap((metrics) => valuesOf(metrics, name));
  }

  async openHttp({ status }: HttpServerOptions): Promise<ClientPort> {
    const { group } = this;
    this.#status = status;
    await group.start();
    return {
      port: group.port,
      setRoutes: () => undefined,
      startDraining: () => group.startDraining(),
      close: (timeoutMs) => group.close(timeoutMs),
    };
  }

  readonly openOps = (options: OpsOptions): ReturnType<typeof createOpsServer> => {
    const { registry } = this.#telemetry;
    const metrics = async (): Promise<string> => {
      const serving = await this.group.metrics();
      await this.group.collectUsage();
      for (const [number, each] of serving) {
        this.#counts.record(number, each);
      }
      return aggregateMetrics([await registry.getMetricsAsJSON(), ...serving.values()]);
    };
    const usage: OpsOptions["usage"] = async (...args) => {
      await this.group.collectUsage();
      return options.usage(...args);
    };
    return createOpsServer({ ...options, usage, registry: { contentType: registry.contentType, metrics } });
  };

  #createHost(sources: ReturnType<typeof createFollowedSources>): ChainHost {
    const { metrics, log } = this.#telemetry;
    const { upstreams, views, filters, state } = sources;
    return new ChainHost(
      {
        heads: upstreams.heads,
        nodes: upstreams.nodes,
        get genesis() {
          return upstreams.genesis;
        },
        ready: views.ready,
        views,
        filters,
        state,
      },
      {
        onLagging: () => {
          metrics.viewsMissed.inc();
          log.warn("a serving process does not respond: it gets no view until it does");
        },
        onRound: (seconds) => metrics.viewRoundSeconds.observe(seconds),
      },
    );
  }
}

/** Starts the main process, which follows the chains, and the serving processes. */
export const createMainProcess = async (config: Config, telemetry: Telemetry): Promise<Forebay> => {
  const role = new MainProcess(config, telemetry);
  const forebay = await createProcess(config, telemetry, role);
  const { url, opsUrl, ready } = forebay;
  return {
    url,
    opsUrl,
    /** A reload replaces them. */
    get chains() {
      return forebay.chains;
    },
    ready,
    reload: async (next, signal) => {
      await forebay.reload(next, signal);
      await role.group.reload({ ...next, server: config.server, cache: config.cache });
    },
    drain: () => forebay.drain(),
    close: () => forebay.close(),
  };
};
