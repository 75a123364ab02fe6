import { flushCompileCache } from "node:module";
import { readVersion } from "../app/main.ts";
import { startForebay } from "../app/startForebay.ts";
import { type Arguments, ConfigError, formatSchema, readArguments, readConfig } from "../config/readConfig.ts";
import { Reload } from "../config/reload.ts";
import { configSchema } from "../config/schema.ts";

const { host, port, opsHost, opsPort } = configSchema.shape.server.parse(undefined);
const { level } = configSchema.shape.log.parse(undefined);

const HELP = `forebay: a JSON-RPC URL in front of Ethereum and OP-stack nodes

  forebay --upstream URL [options]     one chain
  forebay --provider NAME:KEY --chain NAMES   chains of a provider
  forebay --config FILE                more chains, nodes and limits (YAML)
  forebay check ...                    validate, and try nodes, feeds, Redis, facilitator
  forebay cordon CHAIN NODE ...        take a node out of use; uncordon returns it (server.opsToken)
  forebay health ...                   exit code 1 if the running forebay is not healthy
  forebay init [options]               print a commented configuration file
  forebay schema                       print the JSON Schema of the configuration

  --upstream URL      HTTP endpoint of a node; repeat it for more nodes of the same chain
  --upstream-ws URL   WebSocket endpoint of a node, for new heads; in the order of --upstream
  --provider NAME:KEY endpoints of a provider (docs/nodes.md); repeat it for more
  --chain NAMES       chains at these providers, for example op,base,unichain
  --feed URL          the sequencer's feed (Flashblocks, Subblocks); repeat it for more
  --redis URL         redis://, rediss://, redis+sentinel://h1,h2/name, redis+cluster://h1,h2
  --data-dir FOLDER   on a local disk: final data and known state survive a restart
  --host ADDRESS      default ${host}
  --port N            default ${port}; 0 for any free port
  --ops-port N        /metrics, /healthz, /readyz, /usage, /config; default ${opsPort}
  --ops-host ADDRESS  default ${opsHost}
  --log-level LEVEL   trace, debug, info, warn, error, silent; default ${level}
  --force             cordon also the last node of the chain that can be used
  --help, --version

SIGHUP or a changed file applies the new configuration. SIGTERM drains the process and ends it.
Environment variables set the same options: FOREBAY_UPSTREAM, FOREBAY_UPSTREAM_WS and so on.
`;

const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

/** Ends the process also if a thread hangs in SQLite: an exit would wait for it. */
const endAtOnce = (): void => {
  process.kill(process.pid, "SIGKILL");
};

const serve = async (args: Arguments): Promise<void> => {
  const read = () => readConfig(args, process.env);
  const { forebay, telemetry } = await startForebay(read());
  const { log } = telemetry;
  const { config: file } = args.values;
  const reload = new Reload({
    file: typeof file === "string" ? file : undefined,
    read,
    apply: (next, signal) => forebay.reload(next, signal),
    telemetry,
  });
  let signals = 0;
  const stop = (signal: NodeJS.Signals) => {
    signals++;
    if (signals > 1) {
      endAtOnce();
    }
    log.info({ signal }, "draining");
    reload.close();
    forebay.drain().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, "draining failed");
        endAtOnce();
      },
    );
  };
  process.on("SIGTERM", stop).on("SIGINT", stop);
  process.on("SIGHUP", () => void reload.run());
  // The next start reads the cache, also if this process is killed.
  void forebay.ready.then(() => flushCompileCache());
  await forebay.listening;
  log.info({ listening: forebay.url, ops: forebay.opsUrl }, "listening");
};

const main = async (): Promise<void> => {
  const args = readArguments(process.argv.slice(2), process.env);
  if (args.command === "help") {
    return print(HELP);
  }
  if (args.command === "version") {
    return print(readVersion());
  }
  if (args.command === "schema") {
    return print(formatSchema());
  }
  if (args.command === "serve") {
    return serve(args);
  }
  if (args.command === "init") {
    const { askMissing, formatInitialConfig, readInitOptions } = await import("./init.ts");
    return print(formatInitialConfig(await askMissing(readInitOptions(args))));
  }
  if (args.command === "cordon" || args.command === "uncordon") {
    const { cordonNode } = await import("./cordon.ts");
    return print(
      await cordonNode(readConfig(args, process.env), args.command, args.names ?? [], args.values.force === true),
    );
  }
  if (args.command === "health") {
    const argv = process.argv.slice(2).filter((argument) => argument !== "health");
    const { checkHealth } = await import("./health.ts");
    return checkHealth(argv, process.env);
  }
  const { checkConfig } = await import("./check.ts");
  const { formatCheckResult } = await import("./checkResult.ts");
  const results = await checkConfig(readConfig(args, process.env));
  for (const result of results) {
    print(formatCheckResult(result));
  }
  if (results.some(({ level }) => level === "fault")) {
    process.exitCode = 1;
  }
};

try {
  await main();
} catch (error) {
  const expected = error instanceof ConfigError || process.env.FOREBAY_LOG_LEVEL !== "debug";
  process.stderr.write(
    `forebay: ${error instanceof Error ? (expected ? error.message : error.stack) : String(error)}\n`,
  );
  process.exit(1);
}
