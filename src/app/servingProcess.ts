import process from "node:process";
import type { MainFunctions, ServingFunctions } from "../cluster/chainProtocol.ts";
import { MainLink } from "../cluster/mainLink.ts";
import { createRemotePlaces, createRemoteRates } from "../cluster/remoteLimits.ts";
import { RemoteStorage } from "../cluster/remoteStorage.ts";
import { LoopWatch } from "../cluster/viewGate.ts";
import type { Config } from "../config/schema.ts";
import { HttpServer } from "../http/httpServer.ts";
import { loadTracer } from "../telemetry/loadTracer.ts";
import { createTelemetry, type Telemetry } from "../telemetry/telemetry.ts";
import { UsageLedger } from "../telemetry/usageLedger.ts";
import { Channel } from "../threads/channel.ts";
import { createChainRuntime } from "./chainRuntime.ts";
import { createProcess, type Forebay, readVersion } from "./main.ts";
import type { ProcessRole } from "./processRole.ts";
import { shareOfServing } from "./processShare.ts";
import { createServingSources } from "./servingSources.ts";
import { storesEntries } from "./shared.ts";

type MainProcess = Channel<MainFunctions, ServingFunctions>;

/** Limit for the time in which all processes close their listeners. Without the others, this process goes on alone. */
const STOP_MS = 3_000;

/** Resolves when no serving process accepts connections any more. */
const untilAllStopped = ({ channel }: MainLink): Promise<void> =>
  channel.call("stopListening", null, { signal: AbortSignal.timeout(STOP_MS) }).catch(() => undefined);

/** Creates the role of a serving process. It listens after it has the views of all chains that the main process knows. */
const createServingRole = (link: MainLink, usages: UsageLedger, processes: number): ProcessRole => {
  const attaching = new Set<Promise<void>>();
  return {
    share: (config) => shareOfServing(config, processes),
    usages,
    rates: createRemoteRates(link.channel),
    places: createRemotePlaces(link.channel),
    openStorage: (config) => (storesEntries(config) ? new RemoteStorage(link.channel) : undefined),
    createChain: (config, shared) =>
      createChainRuntime(config, shared, (...args) => {
        const sources = createServingSources(...args, link);
        attaching.add(sources.attached);
        return sources;
      }),
    openHttp: async (options) => {
      await Promise.all(attaching);
      const hasPage = options.status !== undefined;
      return HttpServer.listen({
        ...options,
        ...(hasPage && { status: () => link.channel.call("status", null) }),
        onStopped: () => untilAllStopped(link),
      });
    },
    openOps: undefined,
  };
};

interface Serving {
  readonly forebay: Forebay;
  readonly telemetry: Telemetry;
  readonly usages: UsageLedger;
}

/** A process that is killed loses the usage of at most this time. */
const USAGE_MS = 1_000;
/** Limit for the reply of a busy main process. */
const SPENT_MS = 5_000;

const reportUsage = (usages: UsageLedger, channel: MainProcess): void => {
  const changes = usages.takeChanges();
  if (changes.length > 0) {
    channel.notify("addUsage", changes);
  }
};

/** Reports the usage, and receives what all processes and replicas have spent of each budget. */
const exchangeUsage = async (usages: UsageLedger, channel: MainProcess): Promise<void> => {
  const { names } = usages.budgets;
  const take = usages.budgets.mark();
  reportUsage(usages, channel);
  if (names.length > 0) {
    // Messages arrive in their order.
    take(await channel.call("spentUnits", names, { signal: AbortSignal.timeout(SPENT_MS) }));
  }
};

/** Reports the last usage before this process ends. Resolves when the main process has it. */
const reportLastUsage = async (usages: UsageLedger, channel: MainProcess): Promise<void> => {
  const changes = usages.takeChanges();
  if (changes.length > 0) {
    await channel.call("addUsage", changes, { signal: AbortSignal.timeout(USAGE_MS) });
  }
};

/** Starts to serve, and reports the port to the main process. */
const start = async (channel: MainProcess): Promise<Serving> => {
  const { processes, ...received } = await channel.call("begin", null);
  const config = received.config as Config;
  const tracer = await loadTracer(config.tracing, process.env, readVersion());
  const telemetry = createTelemetry({ level: config.log.level, tracer });
  const usages = new UsageLedger({ topKeys: config.usage.topKeys, metrics: undefined });
  const link = new MainLink(channel, new LoopWatch());
  const forebay = await createProcess(config, telemetry, createServingRole(link, usages, processes));
  channel.notify("listening", { port: Number(new URL(forebay.url).port) });
  const exchange = (): unknown => exchangeUsage(usages, channel).catch(() => undefined);
  setInterval(exchange, USAGE_MS).unref();
  exchange();
  return { forebay, telemetry, usages };
};

const serve = (channel: MainProcess): void => {
  const started = Promise.withResolvers<Serving>();
  channel.offer({
    reload: async ({ config }) => {
      const { forebay } = await started.promise;
      await forebay.reload(config as Config);
    },
    drain: async () => {
      const { forebay, telemetry, usages } = await started.promise;
      await forebay.drain().catch((err: unknown) => telemetry.log.error({ err }, "draining failed"));
      await reportLastUsage(usages, channel).catch((err: unknown) =>
        telemetry.log.warn({ err }, "the last usage was not reported"),
      );
      process.exit(0);
    },
    metrics: async () => {
      const { telemetry } = await started.promise;
      return telemetry.registry.getMetricsAsJSON();
    },
    reportUsage: async () => {
      const { usages } = await started.promise;
      reportUsage(usages, channel);
    },
    ping: () => undefined,
  });
  start(channel).then(started.resolve, (error: unknown) => {
    channel.notify("failed", { message: error instanceof Error ? error.message : String(error) });
    // The message is sent at the end of this turn of the event loop.
    setImmediate(() => process.disconnect?.());
  });
};

const channel: MainProcess = new Channel({
  post: (messages) => {
    process.send?.(messages, undefined, {}, () => undefined);
  },
  onError: (error) => {
    // A lost message can leave an old view: the process is replaced.
    process.stderr.write(`forebay: a serving process ends: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
});
process.on("message", (message) => channel.receive(message));
// The main process ends this process. A terminal sends its signals to all processes.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => undefined);
}
serve(channel);
