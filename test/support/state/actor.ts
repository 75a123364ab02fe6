import { fileURLToPath } from "node:url";
import { type Address, encodeDeployData, encodeFunctionData, getContractAddress, type Hex, keccak256 } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { type Contract, compile } from "../builders/compile.ts";

/** One action of the contract Actor. A step that fails has no effect. */
export type ActorStep =
  /** Creates a Store at the address of the salt (CREATE2). */
  | { readonly kind: "create"; readonly salt: number }
  | { readonly kind: "set"; readonly target: Address; readonly slot: number; readonly value: number }
  | { readonly kind: "end"; readonly target: Address; readonly beneficiary: Address }
  /** Destroys a Store and reverts the destruction. */
  | { readonly kind: "endUndone"; readonly target: Address }
  | { readonly kind: "fund"; readonly target: Address; readonly value: number };

/** One transaction of a block. */
export type ActorTransaction =
  | { readonly kind: "steps"; readonly from: number; readonly steps: readonly ActorStep[]; readonly isUndone?: boolean }
  | { readonly kind: "call"; readonly from: number; readonly to: Address; readonly value: bigint; readonly data?: Hex }
  /** Sets the delegation of an account to a contract, or clears it. Source: EIP-7702. */
  | { readonly kind: "delegate"; readonly from: number; readonly authority: number; readonly to: Address | undefined };

const SOLIDITY = fileURLToPath(new URL("Actor.sol", import.meta.url));
const NO_DELEGATE: Address = "0x0000000000000000000000000000000000000000";
const GAS = 3_000_000n;
const MAX_FEE = 10_000_000_000n;
const TIP = 1_000_000_000n;
const KINDS = ["create", "set", "end", "endUndone", "fund"] as const;

let compiled: ReadonlyMap<string, Contract> | undefined;
const contract = (name: string): Contract => {
  // Contracts of all forks since Shanghai run on the newest one.
  compiled ??= compile(SOLIDITY, "shanghai");
  const found = compiled.get(name);
  if (found === undefined) {
    throw new Error(`${name} is not compiled`);
  }
  return found;
};

const encodeStep = (step: ActorStep) => {
  const kind = KINDS.indexOf(step.kind);
  switch (step.kind) {
    case "create":
      return { kind, target: NO_DELEGATE, first: BigInt(step.salt), second: 0n };
    case "set":
      return { kind, target: step.target, first: BigInt(step.slot), second: BigInt(step.value) };
    case "end":
      return { kind, target: step.target, first: BigInt(step.beneficiary), second: 0n };
    case "endUndone":
      return { kind, target: step.target, first: 0n, second: 0n };
    case "fund":
      return { kind, target: step.target, first: BigInt(step.value), second: 0n };
  }
};

/** Signs transactions for one chain with the contract Actor, which is deployed by the first one. */
export class ActorSigner {
  readonly accounts: readonly PrivateKeyAccount[];
  readonly actor: Address;
  readonly #chainId: number;
  readonly #nonces: number[];

  constructor(chainId: number, keys: readonly Hex[]) {
    this.#chainId = chainId;
    this.accounts = keys.map((key) => privateKeyToAccount(key));
    this.#nonces = keys.map(() => 0);
    this.actor = getContractAddress({ from: this.#account(0).address, nonce: 0n });
  }

  /** The address of the Store that a salt creates. */
  storeOf(salt: number): Address {
    return getContractAddress({
      opcode: "CREATE2",
      from: this.actor,
      salt: `0x${salt.toString(16).padStart(64, "0")}`,
      bytecodeHash: keccak256(contract("Store").bytecode),
    });
  }

  /** The first transaction of the first account. */
  deploy(): Promise<Hex> {
    return this.#sign(0, { data: encodeDeployData({ ...contract("Actor"), args: [] }), gas: 8_000_000n });
  }

  sign(transaction: ActorTransaction): Promise<Hex> {
    switch (transaction.kind) {
      case "steps": {
        const { from, steps, isUndone } = transaction;
        const args = [steps.map(encodeStep)];
        const functionName = isUndone ? "undo" : "run";
        const data = encodeFunctionData({ abi: contract("Actor").abi, functionName, args });
        return this.#sign(from, { to: this.actor, data });
      }
      case "call": {
        const { from, to, value, data } = transaction;
        return this.#sign(from, { to, value, ...(data === undefined ? {} : { data }) });
      }
      case "delegate":
        return this.#delegate(transaction);
    }
  }

  /** Encodes a call of Store.set, for accounts that delegate to a Store. */
  encodeSet(slot: number, value: number): Hex {
    const args = [BigInt(slot), BigInt(value)];
    return encodeFunctionData({ abi: contract("Store").abi, functionName: "set", args });
  }

  async #delegate({ from, authority, to }: ActorTransaction & { kind: "delegate" }): Promise<Hex> {
    // The sender's nonce counts before its own authorization.
    const nonce = this.#nonce(authority) + (from === authority ? 1 : 0);
    const signer = this.#account(authority);
    const authorization = await signer.signAuthorization({
      address: to ?? NO_DELEGATE,
      chainId: this.#chainId,
      nonce,
    });
    const signed = await this.#sign(from, { to: NO_DELEGATE, authorizationList: [authorization] });
    this.#nonces[authority] = this.#nonce(authority) + 1;
    return signed;
  }

  async #sign(from: number, fields: object): Promise<Hex> {
    const nonce = this.#nonce(from);
    this.#nonces[from] = nonce + 1;
    const type = "authorizationList" in fields ? ("eip7702" as const) : ("eip1559" as const);
    return this.#account(from).signTransaction({
      gas: GAS,
      maxFeePerGas: MAX_FEE,
      maxPriorityFeePerGas: TIP,
      chainId: this.#chainId,
      nonce,
      ...fields,
      type,
    } as never);
  }

  #nonce(account: number): number {
    return this.#nonces[account] ?? 0;
  }

  #account(at: number): PrivateKeyAccount {
    const account = this.accounts[at];
    if (account === undefined) {
      throw new Error(`no account ${at}`);
    }
    return account;
  }
}

/** The keys of anvil's first accounts. */
export const ANVIL_KEYS = [
  "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
  "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
  "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
  "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
] as const;
