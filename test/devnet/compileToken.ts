import { readFileSync } from "node:fs";
import { join } from "node:path";
import solc from "solc";

const FILE = "Token.sol";

/** Compiles Token.sol. token.ts contains the result, because the compiler takes seconds to load. */
export const compileToken = (): string => {
  const input = {
    language: "Solidity",
    sources: { [FILE]: { content: readFileSync(join(import.meta.dirname, FILE), "utf8") } },
    settings: {
      optimizer: { enabled: true, runs: 200 },
      evmVersion: "cancun",
      metadata: { bytecodeHash: "none", appendCBOR: false },
      outputSelection: { "*": { "*": ["evm.bytecode.object"] } },
    },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  return `0x${output.contracts[FILE].Token.evm.bytecode.object}`;
};
