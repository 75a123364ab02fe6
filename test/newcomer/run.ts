import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createDevnet } from "../devnet/devnet.ts";
import { until } from "../support/clients/until.ts";
import { startRedis } from "../support/servers/redis.ts";
import { configurationsBelow, firstYaml } from "./commandLines.ts";
import { runCommand } from "./runCommand.ts";
import { CHECK_RECIPE, RECIPES, STEPS, type Step } from "./steps.ts";

/**
 * `npm run newcomer` clones the last commit, and runs each command of README and of the installation page there. It checks the
 * configurations of some recipes.
 * It prints what each command printed. Local stand-ins replace the provider, its feed and Redis.
 */
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Proxies and certificate authorities. Without them, npm repeats its requests for minutes. */
const NETWORK = /^(https?_proxy|no_proxy|node_extra_ca_certs|ssl_cert_file|ssl_cert_dir)$/i;
const MAX_LINES = 30;
const PORT = 8_545;
const CALLS = ["eth_chainId", "eth_blockNumber"];

const folder = mkdtempSync(join(tmpdir(), "forebay-newcomer-"));
const clone = join(folder, "forebay");
const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
const print = (text: string): void => void process.stdout.write(`${text}\n`);

const isBusy = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
      .on("connect", () => resolve(true))
      .on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });

/** How a configuration names an environment variable. */
const key = (name: string): string => `\${${name}}`;

/** Starts the stand-ins, and returns what replaces each address of the documents. */
const startStandIns = async (): Promise<readonly (readonly [string, string])[]> => {
  const redis = await startRedis({ after: (end) => ends.push(end) });
  const mainnet = await createDevnet({ chainId: 1, network: "ethereum", feed: false });
  const op = await createDevnet({ chainId: 10 });
  const base = await createDevnet({ chainId: 8453, feed: false });
  ends.push(mainnet.close, op.close, base.close);
  const busy = await isBusy(PORT);
  return [
    ["wss://node.example/KEY", mainnet.anvilWsUrl],
    ["https://node.example/KEY", mainnet.url],
    ["http://geth:8545", mainnet.url],
    ["http://10.0.0.5:8545", mainnet.url],
    ["http://10.0.0.6:8545", mainnet.url],
    ["ws://10.0.0.5:8546", mainnet.anvilWsUrl],
    ["https://relay.example", mainnet.url],
    [`https://provider.example/${key("KEY")}`, mainnet.url],
    [`https://eth-mainnet.g.alchemy.com/v2/${key("KEY")}`, mainnet.url],
    [`wss://eth-mainnet.g.alchemy.com/v2/${key("KEY")}`, mainnet.anvilWsUrl],
    [`https://mainnet.provider.example/${key("KEY_A")}`, mainnet.url],
    [`https://op.provider.example/${key("KEY_A")}`, op.url],
    [`https://base.provider.example/${key("KEY")}`, base.url],
    ["http://base-reth:8545", base.url],
    ["ws://base-reth:8546", base.anvilWsUrl],
    ["redis://localhost", redis.url],
    ["~/.forebay", join(folder, "data")],
    ["redis://redis:6379", redis.url],
    ...["a", "b"].flatMap((name): [string, string][] => [
      [`wss://provider-${name}.example/${key(`KEY_${name.toUpperCase()}`)}`, op.anvilWsUrl],
      [`https://provider-${name}.example/${key(`KEY_${name.toUpperCase()}`)}`, op.url],
    ]),
    ["wss://op-mainnet-fb-ws-pub.optimism.io/ws", op.feedUrl ?? ""],
    ["--global", `--global --prefix ${join(folder, "global")}`],
    ...(busy
      ? ([
          ["npm run demo", "npm run demo -- --port 0"],
          [`--port ${PORT}`, "--port 0"],
        ] as const)
      : []),
  ];
};

const replaceAll = (text: string, replacements: readonly (readonly [string, string])[]): string =>
  replacements.reduce((replaced, [from, to]) => replaced.replaceAll(from, to), text);

/** Hides the folders of this machine. */
const shown = (line: string): string => line.replaceAll(clone, ".").replaceAll(folder, "TEMPORARY");

/** Sends calls to each path that the output or the configuration names. */
const ask = async (url: string, paths: readonly string[]): Promise<void> => {
  for (const path of paths) {
    for (const method of CALLS) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] });
      const response = await fetch(url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      print(`  | > ${path} ${method}: ${response.status} ${(await response.text()).trim()}`);
    }
  }
};

const whileRunning = async ({ asks, tries, line }: Step, output: string): Promise<void> => {
  const [, url, opsUrl] = /"listening":"(http[^"]+)","ops":"(http[^"]+)"/.exec(output) ?? [];
  if (asks && url !== undefined) {
    await until(async () => (await fetch(`${opsUrl}/readyz`)).status === 200, "forebay is ready");
    await ask(url, line.includes("--config") ? ["/op", "/10", "/mainnet", "/1"] : ["/"]);
  }
  const lines = tries ? output.split("\n").filter((each) => each.trim().startsWith("curl ")) : [];
  for (const each of lines) {
    const result = execFileSync("bash", ["-c", each], { encoding: "utf8" });
    print(`  | > ${each.trim()}\n  |   ${result.trim().slice(0, 160)}`);
  }
};

/** Runs one step, and returns the reason of its failure. */
const play = async (step: Step, replacements: readonly (readonly [string, string])[]): Promise<string | undefined> => {
  const { line, instead, needs, until } = step;
  print(`\n$ ${line}`);
  if (needs !== undefined && spawnSync(needs, ["info"]).status !== 0) {
    return void print(`  not run: ${needs} does not work here`);
  }
  if (instead !== undefined && instead.command === undefined) {
    return void print(`  not run: ${instead.reason}`);
  }
  const base = instead?.command ?? line;
  const command = replaceAll(base, replacements);
  if (command !== line) {
    print(`  as: ${shown(command)}${instead === undefined ? "" : ` (${instead.reason})`}`);
  }
  const lines: string[] = [];
  // Of this process, only what a login shell has, and what the network needs. The installed command runs on this Node.js.
  const shell = (process.env.PATH ?? "").split(delimiter).filter((each) => !each.includes("node_modules"));
  const runtime = line.startsWith("forebay ") ? [dirname(process.execPath)] : [];
  const path = [join(folder, "global", "bin"), ...runtime, ...shell].join(delimiter);
  const { HOME, LANG, TMPDIR, KUBECONFIG } = process.env;
  const network = Object.fromEntries(Object.entries(process.env).filter(([name]) => NETWORK.test(name)));
  const ended = await runCommand(command, {
    ...{ folder: clone, env: { HOME, LANG, TMPDIR, KUBECONFIG, ...network, PATH: path }, until },
    onLine: (each) => lines.push(shown(each)),
    whileRunning: async (output) => {
      print(
        lines
          .splice(0)
          .slice(-MAX_LINES)
          .map((each) => `  | ${each}`)
          .join("\n"),
      );
      await whileRunning(step, output);
    },
  });
  print(
    lines
      .slice(-MAX_LINES)
      .map((each) => `  | ${each}`)
      .join("\n"),
  );
  const how = ended.code === null ? "by Ctrl-C" : `with ${ended.code}`;
  print(`  ended ${how} after ${ended.seconds.toFixed(1)} s`);
  if (ended.left) {
    return "a process is left";
  }
  return until === undefined
    ? ended.code === 0
      ? undefined
      : `code ${ended.code}`
    : ended.matched
      ? undefined
      : `no line matches ${until}`;
};

const failures: string[] = [];
try {
  execFileSync("git", ["clone", "--quiet", ROOT, clone]);
  print(`commit ${execFileSync("git", ["-C", clone, "rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim()}`);
  const replacements = await startStandIns();
  const yaml = firstYaml(readFileSync(join(clone, "README.md"), "utf8"));
  writeFileSync(join(clone, "forebay.yaml"), replaceAll(yaml, replacements));
  for (const step of STEPS) {
    const failure = await play(step, replacements);
    if (failure !== undefined) {
      failures.push(`${step.line}: ${failure}`);
    }
  }
  for (const { page, heading } of RECIPES) {
    for (const recipe of configurationsBelow(readFileSync(join(clone, page), "utf8"), heading)) {
      print(`\n${page}, ${heading}`);
      writeFileSync(join(clone, "recipe.yaml"), replaceAll(recipe, replacements));
      const failure = await play(CHECK_RECIPE, replacements);
      if (failure !== undefined) {
        failures.push(`${page}, ${heading}: ${failure}`);
      }
    }
  }
} finally {
  for (const end of ends.reverse()) {
    await end();
  }
}
print(failures.length === 0 ? "\nevery command did what the documents say" : `\nfailed:\n${failures.join("\n")}`);
process.exit(failures.length === 0 ? 0 : 1);
