import { copyFile, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startAnvil } from "../../../devnet/anvil.ts";
import { type Endpoint, npm, type Results, runProgram, startProgram } from "./clientProgram.ts";
import * as work from "./clientWork.ts";
import { indexWithPonder, installPonder } from "./ponderWork.ts";

/** A client program. Without `install` it is a development dependency of this project. */
export interface Client {
  readonly name: string;
  /** Installs it in an empty folder. Rejects if it cannot be installed on this machine. */
  install?(folder: string): Promise<void>;
  run(folder: string, endpoint: Endpoint): Promise<Results>;
}

const here = (file: string): string => join(import.meta.dirname, file);
const { printSteps: _, ...constants } = work;

const runSteps = async (
  command: string,
  args: readonly string[],
  folder: string,
  { url, wsUrl }: Endpoint,
): Promise<Results> => {
  const output = await runProgram(command, [...args, url, wsUrl, JSON.stringify(constants)], folder);
  return JSON.parse(output.trim().split("\n").at(-1) ?? "");
};

const runNode = (file: string, folder: string, endpoint: Endpoint): Promise<Results> =>
  runSteps(process.execPath, [here(file)], folder, endpoint);

const CONTRACT_ARGUMENTS = ["--create", work.DEPLOYMENT];

/** The arguments of cast for each step, without the URL. */
const CAST_STEPS: Readonly<Record<string, readonly string[]>> = {
  chainId: ["chain-id"],
  net_version: ["rpc", "net_version"],
  block: ["block", "latest", "--full", "--json"],
  balance: ["balance", work.ACCOUNT],
  nonce: ["nonce", work.ACCOUNT, "--block", "pending"],
  call: ["call", work.IDENTITY, "--data", work.INPUT],
  gas: ["estimate", "--from", work.ACCOUNT, ...CONTRACT_ARGUMENTS],
  fees: ["gas-price"],
  receipt: [
    ...["send", "--private-key", work.KEY, "--gas-limit", `${work.GAS}`, "--gas-price", `${work.MAX_FEE}`],
    ...["--priority-gas-price", `${work.PRIORITY_FEE}`, "--json", ...CONTRACT_ARGUMENTS],
  ],
  logs: ["logs", "--address", work.CONTRACT, "--from-block", "0", "--to-block", "latest", "--json"],
  eth_sendTransaction: ["send", "--unlocked", "--from", work.ACCOUNT, "--value", "1", "--json", work.IDENTITY],
};

const runCast = async (folder: string, { url }: Endpoint): Promise<Results> => {
  const scope = join(folder, "node_modules", "@foundry-rs");
  const platform = (await readdir(scope)).find((name) => name.startsWith("cast-")) ?? "";
  const results: Record<string, string> = {};
  for (const [step, [command = "", ...args]] of Object.entries(CAST_STEPS)) {
    const run = runProgram(join(scope, platform, "bin", "cast"), [command, "--rpc-url", url, ...args]);
    results[step] = await run.then(
      (text) => text.trim(),
      (error: Error) => `error: ${error.message}`,
    );
  }
  return results;
};

/** Works on a fork of the chain at the endpoint, whose node reads the state there. */
const runOnFork = async (folder: string, url: string, startSeconds: number): Promise<Results> => {
  const timestamp = startSeconds + 100;
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "evm_setNextBlockTimestamp", params: [timestamp] });
  await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  return runNode("viem.ts", folder, { url, wsUrl: url.replace("http", "ws"), startSeconds });
};

export const CLIENTS: readonly Client[] = [
  { name: "viem", run: (folder, endpoint) => runNode("viem.ts", folder, endpoint) },
  { name: "ethers", run: (folder, endpoint) => runNode("ethers.ts", folder, endpoint) },
  {
    name: "anvil fork",
    run: async (folder, { url, startSeconds }) => {
      const fork = await startAnvil(["--fork-url", url]);
      try {
        return await runOnFork(folder, fork.url, startSeconds);
      } finally {
        await fork.close();
      }
    },
  },
  {
    name: "web3.js 4",
    install: (folder) => npm(folder, "web3@4"),
    run: (folder, endpoint) => runNode("web3js.ts", folder, endpoint),
  },
  {
    name: "web3.py 8",
    install: async (folder) => {
      await runProgram("python3", ["-m", "venv", folder]);
      await runProgram(join(folder, "bin", "pip"), ["install", "--quiet", "web3==8.*"]);
    },
    run: (folder, endpoint) => runSteps(join(folder, "bin", "python"), [here("web3py.py")], folder, endpoint),
  },
  {
    name: "ethclient 1.17",
    install: async (folder) => {
      await copyFile(here("ethclient.go"), join(folder, "main.go"));
      await runProgram("go", ["mod", "init", "clients"], folder);
      await runProgram("go", ["get", "github.com/ethereum/go-ethereum@v1.17.10"], folder);
      await runProgram("go", ["build", "-mod=mod", "-o", "client"], folder);
    },
    run: (folder, endpoint) => runSteps(join(folder, "client"), [], folder, endpoint),
  },
  { name: "cast 1.7", install: (folder) => npm(folder, "@foundry-rs/cast@1.7"), run: runCast },
  {
    name: "Hardhat 3 fork",
    install: async (folder) => {
      await npm(folder, "hardhat@3");
      // npm leaves out this optional dependency of a dependency.
      const edr = JSON.parse(await readFile(join(folder, "node_modules/@nomicfoundation/edr/package.json"), "utf8"));
      await npm(folder, `@nomicfoundation/edr-${process.platform}-${process.arch}-gnu@${edr.version}`);
      await writeFile(join(folder, "hardhat.config.js"), "export default {};\n");
    },
    run: async (folder, { url, startSeconds }) => {
      const cli = join(folder, "node_modules/hardhat/dist/src/cli.js");
      const args = [cli, "node", "--fork", url, "--port", "0", "--hostname", "127.0.0.1"];
      const hardhat = await startProgram(process.execPath, args, {
        cwd: folder,
        ready: /server at (http:\/\/[^\s/]+)/,
      });
      try {
        return await runOnFork(folder, hardhat.found, startSeconds);
      } finally {
        await hardhat.end();
      }
    },
  },
  { name: "Ponder 0.16", install: installPonder, run: indexWithPonder },
];
