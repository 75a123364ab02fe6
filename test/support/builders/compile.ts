import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
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

/** Compiles a Solidity file. The compiler is loaded on first use, because that takes longer than most tests. */
export const compile = (file: string, evmVersion: string): ReadonlyMap<string, Contract> => {
  const solc: { compile(input: string): string } = createRequire(import.meta.url)("solc");
  const input = {
    language: "Solidity",
    sources: { [file]: { content: readFileSync(file, "utf8") } },
    settings: {
      evmVersion,
      optimizer: { enabled: true, runs: 200 },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
    },
  };
  const output: Output = JSON.parse(solc.compile(JSON.stringify(input)));
  const errors = (output.errors ?? []).filter(({ severity }) => severity === "error");
  if (errors.length > 0) {
    throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join("\n"));
  }
  const contracts = Object.entries(output.contracts[file] ?? {});
  return new Map(contracts.map(([name, { abi, evm }]) => [name, { abi, bytecode: `0x${evm.bytecode.object}` }]));
};
