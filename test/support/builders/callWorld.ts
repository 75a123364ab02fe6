import { join } from "node:path";
import type { AbiFunction } from "viem";
import type { Address, Hex } from "../../../src/ethereum/hex.ts";
import type { Anvil } from "../../devnet/anvil.ts";
import { deploy } from "../servers/deployed.ts";
import { compile } from "./compile.ts";
import { pick, randomValue } from "./randomValues.ts";

const TOKENS = 1_000_000n;

export interface PlainCall {
  readonly from: Address;
  readonly to: Address;
  readonly data: Hex;
  readonly value: Hex;
}

/** Contracts of many kinds on a development node, and calls of them that follow from a seed. */
export interface CallWorld {
  readonly contracts: number;
  randomCall(random: () => number): PlainCall;
  /** Whether the result of the call contains fields of its block. */
  showsBlock(call: PlainCall): boolean;
}

export const createCallWorld = async (anvil: Anvil, hardfork: string): Promise<CallWorld> => {
  const contracts = compile(join(import.meta.dirname, "../../evm/Contracts.sol"), hardfork);
  const none = () => [];
  const placed = await deploy(anvil, contracts, [
    ["Token", "Token", none],
    ["Other", "Token", none],
    ["Pausable", "PausableToken", none],
    ["Wrapped", "Wrapped", none],
    ["Proxy", "Proxy", (at) => [at("Token")]],
    ["Beacon", "Beacon", (at) => [at("Token")]],
    ["BeaconProxy", "BeaconProxy", (at) => [at("Beacon")]],
    ["Cloner", "Cloner", none],
    ["Factory", "Factory", none],
    ["Pair", "Pair", (at) => [at("Token"), at("Other")]],
    ["Router", "Router", none],
    ["Hasher", "Hasher", none],
    ["Precompiles", "Precompiles", none],
    ["Slots", "Slots", none],
    ["Vault", "Vault", (at) => [at("Token")]],
    ["Multicall", "Multicall", none],
    ["Merkle", "Merkle", none],
    ["Ballot", "Ballot", none],
    ["Nft", "Nft", none],
    ["Numbers", "Numbers", none],
    ["Caller", "Caller", none],
    ["Transient", "Transient", none],
    ["Environment", "Environment", none],
  ]);
  /** The contract whose functions a deployed contract has. */
  const SPEAKS = new Map([
    ["Other", "Token"],
    ["Pausable", "PausableToken"],
    ["Proxy", "Token"],
    ["BeaconProxy", "Token"],
  ]);
  const NAMES = [
    ...[
      "Token",
      "Pausable",
      "Wrapped",
      "Proxy",
      "BeaconProxy",
      "Cloner",
      "Factory",
      "Pair",
      "Router",
      "Hasher",
      "Precompiles",
    ],
    ...["Slots", "Vault", "Multicall", "Merkle", "Ballot", "Nft", "Numbers", "Caller", "Transient", "Environment"],
  ];

  for (const name of ["Token", "Other", "Pausable", "Proxy", "BeaconProxy"]) {
    await placed.send(placed.address(name), placed.encode("Token", "mint", [placed.sender, TOKENS]));
    for (const spender of ["Pair", "Router", "Vault"]) {
      await placed.send(placed.address(name), placed.encode("Token", "approve", [placed.address(spender), 1n << 200n]));
    }
  }
  await placed.send(placed.address("Token"), placed.encode("Token", "transfer", [placed.address("Pair"), 100_000n]));
  await placed.send(placed.address("Other"), placed.encode("Token", "transfer", [placed.address("Pair"), 200_000n]));
  await placed.send(placed.address("Pair"), placed.encode("Pair", "sync", []));
  await placed.send(placed.address("Vault"), placed.encode("Vault", "deposit", [5_000n]));
  await placed.send(placed.address("Slots"), placed.encode("Slots", "fill", [7n, 3n]));
  await placed.send(placed.address("Nft"), placed.encode("Nft", "mintMany", [0n, 9n]));

  const randomCall = (random: () => number): PlainCall => {
    const name = pick(random, NAMES);
    const abi = contracts.get(SPEAKS.get(name) ?? name)?.abi ?? [];
    const functions = abi.filter((item): item is AbiFunction => item.type === "function");
    const chosen = pick(random, functions);
    const addresses = [placed.sender, ...NAMES.map((other) => placed.address(other))];
    const args = chosen.inputs.map((input) => randomValue(random, input, addresses));
    const value = chosen.stateMutability === "payable" && random() < 0.7 ? BigInt(Math.floor(random() * 1_000)) : 0n;
    return {
      from: lower(placed.sender),
      to: lower(placed.address(name)),
      data: placed.encode(SPEAKS.get(name) ?? name, chosen.name, args),
      value: `0x${value.toString(16)}`,
    };
  };

  const environment = lower(placed.address("Environment"));
  return { contracts: NAMES.length, randomCall, showsBlock: ({ to }) => to === environment };
};

const lower = (address: string): Address => address.toLowerCase() as Address;
