import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { HeaderFields } from "../../src/core/heads.ts";
import { type GenesisConfig, genesisForks } from "../../src/ethereum/chainForks.ts";
import { type Address, type Hash, parseData } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import { stripZeros } from "../../src/ethereum/rlp.ts";
import type { ChainForks } from "../../src/ethereum/rules.ts";
import { type BaseBlock, parseBaseBlock } from "../../src/simulation/simulatedHeader.ts";
import type { PlainState } from "../support/builders/stateRoot.ts";
import { readVectorChain } from "./vectorChain.ts";
import { vectorFolder } from "./vectorFolder.ts";

/** The chain of the execution-apis vectors: its blocks, and the state at its head. */
export interface ConformanceChain {
  readonly forks: ChainForks;
  readonly head: bigint;
  readonly state: PlainState;
  block(number: bigint): BaseBlock | undefined;
}

export const readConformanceChain = (): ConformanceChain => {
  const folder = join(vectorFolder, "execution-apis");
  const { config }: { config: GenesisConfig } = JSON.parse(readFileSync(join(folder, "genesis.json"), "utf8"));
  const blocks = readVectorChain();
  return {
    forks: genesisForks(config),
    head: BigInt(blocks.length - 1),
    state: readState(join(folder, "headstate.json")),
    block: (number) => {
      const fields = blocks[Number(number)]?.fields;
      return fields && parseBaseBlock(fields as HeaderFields);
    },
  };
};

interface DumpedAccount {
  readonly balance: string;
  readonly nonce: number;
  readonly code?: Hash;
  readonly storage?: Readonly<Record<Hash, string>>;
}

const readState = (file: string): PlainState => {
  const { accounts }: { accounts: Record<string, DumpedAccount> } = JSON.parse(readFileSync(file, "utf8"));
  return new Map(
    Object.entries(accounts).map(([address, account]) => {
      const code = parseData(account.code ?? "0x");
      const storage = Object.entries(account.storage ?? {}).map(
        ([slot, value]) => [slot as Hash, stripZeros(parseData(`0x${value.replace("0x", "")}`))] as const,
      );
      const balance = BigInt(account.balance);
      const plain = {
        nonce: BigInt(account.nonce),
        balance,
        code,
        codeHash: keccak256Hex(code),
        storage: new Map(storage),
      };
      return [address.toLowerCase() as Address, plain] as const;
    }),
  );
};
