import { type Abi, type Address, encodeDeployData, encodeFunctionData, type Hex } from "viem";
import type { Anvil } from "../../devnet/anvil.ts";
import type { Contract } from "../builders/compile.ts";

const GAS = "0x989680";

/** Contracts that the first account of a development node deployed. */
export interface Deployed {
  readonly sender: Address;
  address(name: string): Address;
  abi(name: string): Abi;
  /** Encodes a call of the contract `name`, for example behind a proxy. */
  encode(name: string, functionName: string, args: readonly unknown[]): Hex;
  send(to: Address, data: Hex, value?: bigint): Promise<void>;
}

interface Receipt {
  readonly contractAddress: Address | null;
  readonly status: Hex;
}

/** Deploys contracts in order. `plan` has name, contract and arguments, which may name earlier contracts. */
export const deploy = async (
  anvil: Anvil,
  contracts: ReadonlyMap<string, Contract>,
  plan: readonly (readonly [
    name: string,
    contract: string,
    args: (at: (name: string) => Address) => readonly unknown[],
  ])[],
): Promise<Deployed> => {
  const [sender] = (await anvil.call("eth_accounts")) as Address[];
  if (sender === undefined) {
    throw new Error("the node has no accounts");
  }
  const placed = new Map<string, readonly [Address, Contract]>();
  const find = (name: string) => {
    const found = placed.get(name);
    if (found === undefined) {
      throw new Error(`${name} is not deployed`);
    }
    return found;
  };
  const mine = async (transaction: object): Promise<Receipt> => {
    const hash = await anvil.call("eth_sendTransaction", { from: sender, gas: GAS, ...transaction });
    // Wait for the block: the node mines some time after it received the transaction.
    await anvil.call("evm_mine");
    const receipt = (await anvil.call("eth_getTransactionReceipt", hash)) as Receipt;
    if (receipt.status !== "0x1") {
      throw new Error(`failed: ${JSON.stringify(transaction).slice(0, 200)}`);
    }
    return receipt;
  };
  for (const [name, contract, args] of plan) {
    const compiled = contracts.get(contract);
    if (compiled === undefined) {
      throw new Error(`${contract} is not compiled`);
    }
    const data = encodeDeployData({ ...compiled, args: args((other) => find(other)[0]) });
    const { contractAddress } = await mine({ data });
    if (contractAddress === null) {
      throw new Error(`${name} has no address`);
    }
    placed.set(name, [contractAddress, compiled]);
  }
  return {
    sender,
    address: (name) => find(name)[0],
    abi: (name) => find(name)[1].abi,
    encode: (name, functionName, args) =>
      encodeFunctionData({ abi: contracts.get(name)?.abi ?? [], functionName, args }),
    send: async (to, data, value = 0n) => {
      await mine({ to, data, value: `0x${value.toString(16)}` });
    },
  };
};
