import process from "node:process";
import type { MainFunctions, ServingFunctions } from "../cluster/chainProtocol.ts";
import { MainLink } from "../cluster/mainLink.ts";
import { ProcessChannel } from "../cluster/processChannel.ts";
import { LoopWatch } from "../cluster/viewGate.ts";
import type { Config } from "../config/schema.ts";
import { createHttpServer } from "../http/httpServer.ts";
import { createTelemetry, type Telemetry } from "../telemetry/telemetry.ts";
import { createChainRuntime } from "./chainRuntime.ts";
import { createForebay, type Forebay } from "./main.ts";
import type { ProcessRole } from "./processRole.ts";
import { shareOfServing } from "./processShare.ts";
import { createServingSources } from "./servingSources.ts";

type Channel = ProcessChannel<MainFunctions, ServingFunctions>;

/** Creates the role of a serving process. It listens after it has the views of all chains that the main process knows. */
const createServingRole = (link: MainLink, processes: number): ProcessRole => {
  const attaching = new Set<Promise<void>>();
  return {
    share: (config) => shareOfServing(config, processes),
    createChain: (config, shared) =>
      createChainRuntime(config, shared, (...args) => {
        const sources = createServingSources(...args, link);
        attaching.add(sources.attached);
        return sources;
      }),
    statusMetrics: (own) => own,
    openHttp: async (options) => {
      await Promise.all(attaching);
      const hasPage = options.status !== undefined;
      return createHttpServer({ ...options, ...(hasPage && { status: () => link.channel.call("status", null) }) });
    },
    openOps: undefined,
  };
};

/** Starts to serve, and reports the port to the main process. */
const start = async (channel: Channel): Promise<[Forebay, Telemetry]> => {
  const { processes, ...received } = await channel.call("begin", null);
  const config = received.config as Config;
  const telemetry = createTelemetry({ level: config.log.level });
  const link = new MainLink(channel, new LoopWatch());
  const forebay = await createForebay(config, telemetry, createServingRole(link, processes));
  channel.notify("listening", { port: Number(new URL(forebay.url).port) });
  return [forebay, telemetry];
};

const serve = (channel: Channel): void => {
  const started = Promise.withResolvers<[Forebay, Telemetry]>();
  channel.offer({
    reload: async ({ config }) => {
      const [forebay] = await started.promise;
      await forebay.reload(config as Config);
    },
    drain: async () => {
      const [forebay, { log }] = await started.promise;
      await forebay.drain().catch((err: unknown) => log.error({ err }, "draining failed"));
      process.exit(0);
    },
    metrics: async () => {
      const [, { registry }] = await started.promise;
      return registry.getMetricsAsJSON();
    },
    ping: () => undefined,
  });
  start(channel).then(started.resolve, (error: unknown) => {
    channel.notify("failed", { message: error instanceof Error ? error.message : String(error) });
    // The message is sent at the end of this turn of the event loop.
    setImmediate(() => process.disconnect?.());
  });
};

const channel: Channel = new ProcessChannel(
  (messages) => {
    process.send?.(messages, undefined, {}, () => undefined);
  },
  (error) => {
    // A lost message can leave an old view: the process is replaced.
    process.stderr.write(`forebay: a serving process ends: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
process.on("message", (message) => channel.receive(message));
// The main process ends this process. A terminal sends its signals to all processes.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => undefined);
}
serve(channel);
