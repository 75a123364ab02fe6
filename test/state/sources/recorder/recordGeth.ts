import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Hex } from "viem";
import { freePort } from "../../../support/servers/ports.ts";

/** A geth that makes a block each second. */
export interface RecordedGeth {
  readonly version: string;
  readonly dataDir: string;
  call(method: string, ...params: readonly unknown[]): Promise<unknown>;
  /** Returns the RLP of a block's access list, from the database. The node ends before. */
  readAccessLists(blocks: readonly { readonly number: string; readonly hash: string }[]): Promise<Hex[]>;
  callAll(method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]>;
  close(): Promise<void>;
}

interface Genesis {
  config: Record<string, unknown>;
  alloc: Record<string, unknown>;
  [field: string]: unknown;
}

/** The key of a block access list in geth's database. Source: go-ethereum, core/rawdb/schema.go. */
const accessListKey = (number: string, hash: string): Hex =>
  `0x${Buffer.from("j").toString("hex")}${BigInt(number).toString(16).padStart(16, "0")}${hash.slice(2)}`;

const readDatabase = (binary: string, dataDir: string, key: Hex): Hex => {
  const output = execFileSync(binary, ["--datadir", dataDir, "--verbosity", "1", "db", "get", key], {
    encoding: "utf8",
  });
  const value = /: (?<value>0x[0-9a-f]+)\s*$/.exec(output)?.groups?.value;
  if (value === undefined) {
    throw new Error(`geth's database has no ${key}: ${output}`);
  }
  return value as Hex;
};

/** Starts geth on a new chain. `change` edits the genesis of developer mode. `funded` have ether from the start. */
export const startGeth = async (
  binary: string,
  funded: readonly Hex[],
  change: (genesis: Genesis) => void = () => undefined,
): Promise<RecordedGeth> => {
  const dataDir = mkdtempSync(join(tmpdir(), "geth-"));
  const genesis: Genesis = JSON.parse(execFileSync(binary, ["--dev", "dumpgenesis"], { encoding: "utf8" }));
  for (const address of funded) {
    genesis.alloc[address.slice(2)] = { balance: `0x${(10n ** 24n).toString(16)}` };
  }
  genesis.gasLimit = "0x3938700";
  change(genesis);
  writeFileSync(join(dataDir, "genesis.json"), JSON.stringify(genesis));
  execFileSync(binary, ["--datadir", dataDir, "--verbosity", "1", "init", join(dataDir, "genesis.json")]);
  const port = await freePort();
  const child: ChildProcess = spawn(
    binary,
    [
      ...["--dev", "--dev.period", "1", "--datadir", dataDir, "--ipcdisable", "--verbosity", "2"],
      ...["--http", "--http.port", String(port), "--http.api", "eth,debug,dev,web3,net,txpool"],
      ...["--port", "0", "--nodiscover", "--authrpc.port", String(await freePort()), "--gcmode", "archive"],
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  let id = 0;
  const post = async (body: unknown): Promise<unknown> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`http://127.0.0.1:${port}`, { method: "POST", headers, body: JSON.stringify(body) });
    return response.json();
  };
  const resultOf = ({ result, error }: { result?: unknown; error?: { message: string } }): unknown => {
    if (error !== undefined) {
      throw new Error(error.message);
    }
    return result;
  };
  const call = async (method: string, ...params: readonly unknown[]): Promise<unknown> =>
    resultOf((await post({ jsonrpc: "2.0", id: ++id, method, params })) as never);
  const callAll = async (method: string, params: readonly (readonly unknown[])[]): Promise<unknown[]> =>
    ((await post(params.map((each) => ({ jsonrpc: "2.0", id: ++id, method, params: each })))) as { id: number }[])
      .sort((one, other) => one.id - other.id)
      .map((response) => resultOf(response as never));
  const end = async (): Promise<void> => {
    if (child.exitCode === null && child.kill("SIGTERM")) {
      await once(child, "exit");
    }
  };
  for (;;) {
    try {
      const version = String(await call("web3_clientVersion"));
      return {
        version,
        dataDir,
        call,
        callAll,
        readAccessLists: async (blocks) => {
          await end();
          return blocks.map(({ number, hash }) => readDatabase(binary, dataDir, accessListKey(number, hash)));
        },
        close: async () => {
          await end();
          rmSync(dataDir, { recursive: true });
        },
      };
    } catch (error) {
      if (child.exitCode !== null) {
        throw error;
      }
      await sleep(200);
    }
  }
};
