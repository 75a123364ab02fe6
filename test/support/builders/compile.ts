import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { threadId } from "node:worker_threads";
import type { Abi, Hex } from "viem";

export interface Contract {
  readonly abi: Abi;
  readonly bytecode: Hex;
}

interface Output {
  readonly errors?: readonly { readonly severity: string; readonly formattedMessage: string }[];
  readonly contracts: Readonly<
    Record<
      string,
      Record<string, { readonly abi: Abi; readonly evm: { readonly bytecode: { readonly object: string } } }>
    >
  >;
}

const require = createRequire(import.meta.url);
const COMPILED = join(import.meta.dirname, "../../../node_modules/.cache/contracts");

/** Compiles an input, or reads its output from an earlier test: the compiler takes 3 s to load, longer than most tests. */
const compileOnce = (input: string): string => {
  const { version }: { readonly version: string } = require("solc/package.json");
  const name = createHash("sha256").update(version).update(input).digest("hex");
  const path = join(COMPILED, `${name}.json`);
  if (existsSync(path)) {
    return readFileSync(path, "utf8");
  }
  const solc: { compile(input: string): string } = require("solc");
  const output = solc.compile(input);
  mkdirSync(COMPILED, { recursive: true });
  // Tests of other processes read the whole file, or none.
  const written = `${path}.${process.pid}.${threadId}`;
  writeFileSync(written, output);
  renameSync(written, path);
  return output;
};

/** Compiles a Solidity file. */
export const compile = (file: string, evmVersion: string): ReadonlyMap<string, Contract> => {
  const input = {
    language: "Solidity",
    sources: { [file]: { content: readFileSync(file, "utf8") } },
    settings: {
      evmVersion,
      optimizer: { enabled: true, runs: 200 },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
    },
  };
  const output: Output = JSON.parse(compileOnce(JSON.stringify(input)));
  const errors = (output.errors ?? []).filter(({ severity }) => severity === "error");
  if (errors.length > 0) {
    throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join("\n"));
  }
  const contracts = Object.entries(output.contracts[file] ?? {});
  return new Map(contracts.map(([name, { abi, evm }]) => [name, { abi, bytecode: `0x${evm.bytecode.object}` }]));
};
