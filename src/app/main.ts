import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { Cordons } from "../admin/cordons.ts";
import { createOpsServer, type OpsOptions, type OpsServer } from "../admin/opsServer.ts";
import { Readiness } from "../admin/readiness.ts";
import { statusPage } from "../admin/statusPage.ts";
import { StatusReport } from "../admin/statusReport.ts";
import { formatMasked } from "../config/maskConfig.ts";
import { changedFixedOptions } from "../config/reload.ts";
import type { Config } from "../config/schema.ts";
import { formatAbout } from "../http/chainRoutes.ts";
import { drain } from "../http/drain.ts";
import { HttpServer, type HttpServerOptions } from "../http/httpServer.ts";
import { BudgetReports } from "../telemetry/budgetReports.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { UsageDays } from "../telemetry/usageDays.ts";
import { UsageLedger } from "../telemetry/usageLedger.ts";
import { AccessControl } from "./accessControl.ts";
import type { Chain } from "./chain.ts";
import { Chains } from "./chains.ts";
import { configuredBudgets } from "./configuredBudgets.ts";
import { PaymentSource } from "./paymentSource.ts";
import { createShared, openStorage, type Shared, usageStoreOf } from "./shared.ts";

/** Reads the version of the forebay package. */
export const readVersion = (): string => {
  const manifest: { version?: unknown } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return String(manifest.version);
};

/** Opens the ports of a process. A library has no port that is not configured. */
export interface Ports {
  openHttp(options: HttpServerOptions): Promise<HttpServer>;
  openOps(options: OpsOptions): Promise<OpsServer>;
}

const configuredPorts: Ports = { openHttp: HttpServer.listen, openOps: createOpsServer };

/** A running forebay: one process with one or more chains. */
export interface Forebay {
  readonly url: string;
  readonly opsUrl: string;
  readonly chains: readonly Pick<Chain, "name" | "upstreams">[];
  /** Resolves when every chain has its genesis and a first head. */
  readonly ready: Promise<void>;
  /**
   * Resolves when the port for clients is open. A process that shares its port opens it when it can serve. Rejects if the port cannot
   * be opened. It stays pending if the process ends before.
   */
  readonly listening: Promise<void>;
  /**
   * Applies another configuration. Rejects with ConfigError, and changes nothing, if it cannot. Ports and caches do not change.
   * An abort ends the wait for the nodes of new chains.
   */
  reload(config: Config, signal?: AbortSignal): Promise<void>;
  /** Becomes unready at once, waits for the requests in flight, then closes everything. Rejects if a part does not close in time. */
  drain(): Promise<void>;
  /** Closes everything at once. */
  close(): Promise<void>;
}

const formatUrl = (host: string, port: number): string => `http://${host.includes(":") ? `[${host}]` : host}:${port}`;

const opened = <T>(server: T | undefined): T => {
  if (server === undefined) {
    throw new Error("the ports are not open yet");
  }
  return server;
};

/** Limit for what comes after the requests: known state is written to the data folder. The grace period has room for it. */
const CLOSE_MS = 12_000;
/** Period of the checks whether a process that shares its port can serve. */
const READY_POLL_MS = 50;

interface RunningParts {
  readonly ports: Ports;
  readonly shared: Shared;
  readonly payments: PaymentSource;
}

class RunningForebay implements Forebay {
  readonly #ports: Ports;
  readonly #telemetry: Telemetry;
  readonly #shared: Shared;
  readonly #usages: UsageLedger;
  readonly #usageDays: UsageDays;
  readonly #budgetReports: BudgetReports;
  readonly #payments: PaymentSource;
  readonly #access: AccessControl;
  readonly #chains: Chains;
  readonly #cordons = new Cordons(() => this.#chains.current);
  readonly #readiness: Readiness;
  readonly #listening = Promise.withResolvers<void>();
  #http: HttpServer | undefined;
  #ops: OpsServer | undefined;
  #config: Config;
  #isDraining = false;

  constructor(config: Config, telemetry: Telemetry, { ports, shared, payments }: RunningParts) {
    this.#config = config;
    this.#ports = ports;
    this.#telemetry = telemetry;
    telemetry.requestLog.share = config.log.requests;
    this.#shared = shared;
    this.#payments = payments;
    this.#usages = shared.usages;
    this.#usages.budgets.configure(configuredBudgets(config));
    this.#usageDays = new UsageDays(this.#usages, usageStoreOf(shared));
    this.#budgetReports = new BudgetReports(this.#usages.budgets, telemetry);
    this.#access = new AccessControl(config, telemetry, { usages: this.#usages, payments });
    const { drainTimeoutMs } = config.server;
    this.#chains = new Chains(config.chains, shared, drainTimeoutMs, (routes) => this.#http?.setRoutes(routes));
    this.#readiness = new Readiness({
      rule: config.server.readiness,
      chains: () => this.#chains.current,
      isDraining: () => this.#isDraining,
    });
  }

  /** Opens the ports. Rejects if a port is in use. Does not wait for a port that is shared: see `listening`. */
  async open(): Promise<void> {
    this.#ops = await this.#ports.openOps(this.#opsOptions());
    if (this.#config.server.reusePort) {
      this.#untilReady()
        .then(() => this.#listen())
        .then(this.#listening.resolve, this.#listening.reject);
    } else {
      await this.#listen();
      this.#listening.resolve();
    }
  }

  async #untilReady(): Promise<void> {
    while (this.#readiness.report(undefined).status !== 200) {
      await wait(READY_POLL_MS, undefined, { ref: false });
    }
  }

  async #listen(): Promise<void> {
    this.#http = await this.#openHttp();
    // Chains may have become known while the port was opened.
    this.#http.setRoutes(this.#chains.routes);
  }

  get listening(): Promise<void> {
    return this.#listening.promise;
  }

  get url(): string {
    return formatUrl(this.#config.server.host, opened(this.#http).port);
  }

  get opsUrl(): string {
    return formatUrl(this.#config.server.opsHost, opened(this.#ops).port);
  }

  get chains(): readonly Chain[] {
    return this.#chains.current;
  }

  get ready(): Promise<void> {
    return this.#chains.ready;
  }

  async reload(next: Config, signal = new AbortController().signal): Promise<void> {
    const { log, requestLog } = this.#telemetry;
    const { server, cache, usage, tracing } = this.#config;
    const options = changedFixedOptions(this.#config, next);
    if (options.length > 0) {
      log.warn({ options }, "these options need a restart");
    }
    for (const cordoned of this.#cordons.clear()) {
      log.warn(cordoned, "the reload forgets that the node was cordoned");
    }
    await this.#payments.load(next);
    await this.#replaceChains(next, signal);
    this.#access.setRules({ ...next, server, usage });
    this.#shared.webSockets.reauthorize(this.#access.reauthorize);
    log.level = next.log.level;
    requestLog.share = next.log.requests;
    this.#config = { ...next, server, cache, usage, tracing };
  }

  /** New nodes need their budgets, and the old ones are served until then. */
  async #replaceChains(next: Config, signal: AbortSignal): Promise<void> {
    const { budgets } = this.#usages;
    const [before, after] = [configuredBudgets(this.#config), configuredBudgets(next)];
    budgets.configure([...before, ...after]);
    try {
      await this.#chains.replace(next.chains, signal);
    } catch (error) {
      budgets.configure(before);
      throw error;
    }
    budgets.configure(after);
  }

  async drain(): Promise<void> {
    const { drainDelayMs, drainTimeoutMs } = this.#config.server;
    const http = this.#http;
    await drain({
      server: {
        startDraining: () => http?.startDraining(),
        close: (timeoutMs) => this.#closeServers(timeoutMs),
      },
      // Nobody has to leave a port that is not open.
      delay: async () => http && wait(drainDelayMs),
      timeoutMs: drainTimeoutMs,
      markUnready: () => {
        this.#isDraining = true;
      },
    });
    const isClosed = await Promise.race([this.#closeRest().then(() => true), wait(CLOSE_MS, false, { ref: false })]);
    if (!isClosed) {
      throw new Error(`a part did not close within ${CLOSE_MS} ms`);
    }
  }

  async close(): Promise<void> {
    this.#isDraining = true;
    await this.#closeServers(0);
    await this.#closeRest();
  }

  #openHttp(): Promise<HttpServer> {
    const { server } = this.#config;
    const { metrics } = this.#telemetry;
    const status = new StatusReport({
      version: readVersion(),
      metrics,
      readToday: () => this.#usageDays.today(),
      chains: () => this.#chains.current,
      isDraining: () => this.#isDraining,
    });
    return this.#ports.openHttp({
      ...server,
      routes: this.#chains.routes,
      memory: this.#shared.budget,
      telemetry: this.#telemetry,
      about: () => formatAbout(this.#chains.current),
      ...(server.statusPage && { page: statusPage(), status: () => status.read() }),
      authenticate: this.#access.authenticate,
      isTrustedProxy: this.#access.isTrustedProxy,
      isReady: () => this.#readiness.report(undefined).status === 200,
    });
  }

  #opsOptions(): OpsOptions {
    const { opsHost, opsPort, opsToken } = this.#config.server;
    const { log, registry } = this.#telemetry;
    return {
      host: opsHost,
      port: opsPort,
      registry,
      readiness: (chain) => this.#readiness.report(chain),
      measure: () => this.#measureChains(),
      config: () => formatMasked(this.#config),
      usage: async (top, days) => {
        const ofDays = days === undefined ? {} : await this.#usageDays.report(days, top);
        return this.#usages.format(this.#config.usage.prices, top, ofDays);
      },
      ...(opsToken !== undefined && {
        cordon: {
          token: opsToken,
          cordon: (...args) => this.#cordons.cordon(...args),
          uncordon: (...args) => this.#cordons.uncordon(...args),
        },
      }),
      onError: (error) => log.error({ err: error }, "metrics could not be collected"),
    };
  }

  /** Sets the metrics that are computed for each scrape. */
  #measureChains(): void {
    const { metrics } = this.#telemetry;
    for (const served of this.#chains.current) {
      const { name: chain, upstreams } = served;
      metrics.chainServing.set({ chain }, this.#readiness.isServing(served) ? 1 : 0);
      const { newest } = upstreams.heads;
      if (newest) {
        metrics.headAgeSeconds.set({ chain }, Math.max(0, Date.now() / 1000 - Number(newest.timestamp)));
      }
    }
  }

  async #closeServers(timeoutMs: number): Promise<void> {
    // A start that failed has no port.
    await Promise.all([this.#http?.close(timeoutMs), this.#shared.webSockets.close(timeoutMs)]);
  }

  async #closeRest(): Promise<void> {
    await this.#chains.close();
    await this.#shared.evmThreads.close();
    await this.#shared.verifyPool.close();
    await this.#shared.provenBlocks.close();
    await this.#shared.writeSetThread.close();
    this.#access.close();
    this.#payments.close();
    await this.#telemetry.tracer?.close();
    this.#budgetReports.close();
    await this.#usageDays.close();
    this.#shared.redis?.close();
    await this.#shared.disk?.close();
    await this.#shared.storage?.close();
    await this.#ops?.close();
  }
}

/** Opens the ports and starts to follow the nodes. Rejects if a port is in use. */
export const createProcess = async (
  config: Config,
  telemetry: Telemetry,
  ports: Ports = configuredPorts,
): Promise<Forebay> => {
  const storage = openStorage(config, telemetry);
  telemetry.series.beginProcess(
    new Set([...(config.cache.redis === undefined ? [] : ["redis" as const]), ...(storage ? ["disk" as const] : [])]),
  );
  telemetry.metrics.buildInfo.set({ version: readVersion(), node_version: process.version }, 1);
  const { topKeys } = config.usage;
  const usages = new UsageLedger({ topKeys, metrics: telemetry.metrics });
  const shared = createShared(config, telemetry, usages, storage);
  const payments = new PaymentSource(telemetry, shared.redis?.run);
  await payments.load(config);
  const forebay = new RunningForebay(config, telemetry, { ports, shared, payments });
  try {
    await forebay.open();
  } catch (error) {
    // The command ends at once. Another program must not wait for the end of what has begun.
    void forebay.close();
    throw error;
  }
  return forebay;
};
