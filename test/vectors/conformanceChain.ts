import { readFileSync } from "node:fs";
import { join } from "node:path";
import { RLP } from "@ethereumjs/rlp";
import { type GenesisConfig, genesisForks } from "../../src/ethereum/chainForks.ts";
import { type Address, formatData, type Hash, parseData, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { keccak256, keccak256Hex } from "../../src/ethereum/keccak.ts";
import { stripZeros } from "../../src/ethereum/rlp.ts";
import type { ChainForks } from "../../src/ethereum/rules.ts";
import type { BaseBlock } from "../../src/simulation/simulatedHeader.ts";
import type { PlainState } from "../support/builders/stateRoot.ts";

/** The chain of the execution-apis vectors: its blocks, and the state at its head. */
export interface ConformanceChain {
  readonly forks: ChainForks;
  readonly head: bigint;
  readonly state: PlainState;
  block(number: bigint): BaseBlock | undefined;
}

export const readConformanceChain = (folder: string): ConformanceChain => {
  const { config }: { config: GenesisConfig } = JSON.parse(readFileSync(join(folder, "genesis.json"), "utf8"));
  const blocks = new Map(readHeaders(join(folder, "chain.rlp")).map((block) => [block.number, block]));
  return {
    forks: genesisForks(config),
    head: BigInt(blocks.size),
    state: readState(join(folder, "headstate.json")),
    block: (number) => blocks.get(number),
  };
};

const readHeaders = (file: string): BaseBlock[] => {
  const headers: BaseBlock[] = [];
  let rest: Uint8Array = readFileSync(file);
  while (rest.length > 0) {
    const { data, remainder } = RLP.decode(rest, true);
    const [header] = data as Uint8Array[][];
    if (header === undefined) {
      throw new Error("a block without a header");
    }
    headers.push(parseHeader(header));
    rest = remainder;
  }
  return headers;
};

const parseHeader = (fields: readonly Uint8Array[]): BaseBlock => {
  const bytes = (at: number) => fields[at] ?? new Uint8Array(0);
  const number = (at: number) => BigInt(`0x0${bytes(at).toHex()}`);
  const optional = (at: number) => (fields[at] === undefined ? undefined : number(at));
  return {
    hash: formatData(keccak256(RLP.encode([...fields]))),
    miner: formatData(bytes(2)),
    difficulty: number(7),
    number: number(8),
    gasLimit: number(9),
    gasUsed: number(10),
    timestamp: number(11),
    extraData: formatData(bytes(12)),
    mixHash: formatData(bytes(13)),
    baseFeePerGas: optional(15),
    blobGasUsed: optional(17) ?? 0n,
    excessBlobGas: optional(18) ?? 0n,
    parentBeaconBlockRoot: fields[19] === undefined ? ZERO_HASH : formatData(bytes(19)),
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
