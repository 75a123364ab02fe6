import { fileURLToPath } from "node:url";
import { type Address, encodeAbiParameters, encodeFunctionData, keccak256, pad, toHex } from "viem";
import type { Anvil } from "../../devnet/anvil.ts";
import { compile } from "../builders/compile.ts";
import { deploy } from "../servers/deployed.ts";

const SOURCE = fileURLToPath(new URL("Token.sol", import.meta.url));

/** The constants of the contract have no slot. */
const BALANCES_SLOT = 0n;

/** The chain of the development node. */
export const NETWORK = "eip155:31337" as const;

/** A token with EIP-3009 on a development node. */
export interface Token {
  readonly asset: { readonly address: Address; readonly name: string; readonly version: string };
  balanceOf(account: Address): Promise<bigint>;
  setBalance(account: Address, balance: bigint): Promise<void>;
}

/** Deploys a token. `holder` has the whole supply. */
export const deployToken = async (anvil: Anvil, holder: Address, supply: bigint): Promise<Token> => {
  const deployed = await deploy(anvil, compile(SOURCE, "cancun"), [["token", "Token", () => [holder, supply]]]);
  const address = deployed.address("token");
  const abi = deployed.abi("token");
  return {
    asset: { address, name: "USD Coin", version: "2" },
    balanceOf: async (account) => {
      const data = encodeFunctionData({ abi, functionName: "balanceOf", args: [account] });
      return BigInt(String(await anvil.call("eth_call", { to: address, data }, "latest")));
    },
    setBalance: async (account, balance) => {
      const slot = keccak256(encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [account, BALANCES_SLOT]));
      await anvil.call("anvil_setStorageAt", address, slot, pad(toHex(balance)));
    },
  };
};
