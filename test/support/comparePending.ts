import { encodeAbiParameters, keccak256, pad, toHex } from "viem";
import { type Address, formatData, formatQuantity, type Hash, parseData } from "../../src/chain/hex.ts";
import type { StateSource } from "../../src/chain/stateReader.ts";
import type { PendingView } from "../../src/chain/view.ts";
import { pendingState } from "../../src/pending/pendingState.ts";
import { devAccounts } from "../devnet/traffic.ts";
import type { Ask } from "./nodeState.ts";

/** Of what `pending` is compared: accounts, and slots of one contract. */
export interface Watched {
  readonly accounts: readonly Address[];
  readonly contract: Address;
  readonly slots: readonly Hash[];
}

const BALANCES_SLOT = 1n;
const STORED_SLOT = 3n;
const RECIPIENTS = 97;
const SHOWN_RECIPIENTS = 12;
const VAULTS: readonly Address[] = ["0x11", "0x19", "0x1a", "0x1b"].map(
  (last): Address => `0x42${"00".repeat(18)}${last.slice(2)}`,
);

const lower = (address: string): Address => `0x${address.slice(2).toLowerCase()}`;
const recipient = (at: number): Address => `0x${(0xba51n * 2n ** 128n + BigInt(at)).toString(16).padStart(40, "0")}`;
const slotOf = (key: Hash, slot: bigint): Hash =>
  keccak256(encodeAbiParameters([{ type: "bytes32" }, { type: "uint256" }], [key, slot]));

/** What the devnet's traffic touches: senders, recipients, vaults, and 200 slots of its token. */
export const watchTraffic = (token: Address): Watched => {
  const owners = devAccounts.map(({ address }) => lower(address));
  const recipients = Array.from({ length: RECIPIENTS }, (_, at) => recipient(at));
  const holders = [...owners, ...recipients].map((address) => slotOf(pad(address), BALANCES_SLOT));
  const stored = Array.from({ length: 17 }, (_, at) => slotOf(toHex(at, { size: 32 }), STORED_SLOT));
  const plain = Array.from({ length: 200 - holders.length - stored.length }, (_, at) => toHex(at, { size: 32 }));
  return {
    accounts: [...owners, ...recipients.slice(0, SHOWN_RECIPIENTS), ...VAULTS, lower(token)],
    contract: lower(token),
    slots: [...holders, ...stored, ...plain],
  };
};

/** A node's words for the same values: `what` -> value. */
export type Values = ReadonlyMap<string, string>;

/** `size` is not among them: anvil leaves the empty list of withdrawals out of it. */
const BLOCK_FIELDS = [
  "number",
  "parentHash",
  "miner",
  "gasLimit",
  "gasUsed",
  "timestamp",
  "baseFeePerGas",
  "logsBloom",
  "transactionsRoot",
  "mixHash",
  "extraData",
  "stateRoot",
  "blobGasUsed",
  "excessBlobGas",
] as const;

const describeBlock = (values: Map<string, string>, block: Record<string, unknown>): void => {
  for (const field of BLOCK_FIELDS) values.set(`block ${field}`, String(block[field]));
  values.set("block transactions", String(block.transactions));
};

/** The node's own pending state; undefined if it moved while it was read. */
export const readNodePending = async (ask: Ask, watched: Watched): Promise<Values | undefined> => {
  const values = await readOnce(ask, watched);
  const after = (await ask("eth_getBlockByNumber", ["pending", false])) as Record<string, unknown>;
  return values.get("block transactions") === String(after.transactions) && values.get("block number") === after.number
    ? values
    : undefined;
};

const readOnce = async (ask: Ask, { accounts, contract, slots }: Watched): Promise<Values> => {
  const values = new Map<string, string>();
  const keep = async (what: string, method: string, address: string) => {
    values.set(`${what} ${address}`, String(await ask(method, [address, "pending"])));
  };
  const [block, storage] = await Promise.all([
    ask("eth_getBlockByNumber", ["pending", false]),
    ask("eth_getStorageValues", [{ [contract]: slots }, "pending"]),
    ...accounts.flatMap((address) => [
      keep("balance", "eth_getBalance", address),
      keep("nonce", "eth_getTransactionCount", address),
    ]),
    keep("code", "eth_getCode", contract),
  ]);
  describeBlock(values, block as Record<string, unknown>);
  const [words = []] = Object.values(storage as Record<string, readonly string[]>);
  for (const [at, slot] of slots.entries()) values.set(`slot ${slot}`, String(words[at]));
  return values;
};

/** The same, as it is read from a view: what its blocks wrote, over the state at their base. */
export const readView = async (view: PendingView, base: StateSource, watched: Watched): Promise<Values> => {
  const values = new Map<string, string>();
  const { accounts, contract, slots } = watched;
  const keys = { accounts, slots: slots.map((slot) => [contract, slot] as const), blockHashes: [] };
  const read = await pendingState(view, base).read(keys, AbortSignal.timeout(5_000));
  const codes = new Map(read.codes);
  for (const [address, account] of read.accounts) {
    values.set(`balance ${address}`, formatQuantity(account?.balance ?? 0n));
    values.set(`nonce ${address}`, formatQuantity(account?.nonce ?? 0n));
    if (address === contract)
      values.set(`code ${address}`, formatData(codes.get(account?.codeHash ?? "0x") ?? new Uint8Array(0)));
  }
  for (const [, slot, value] of read.slots) values.set(`slot ${slot}`, pad(formatData(value), { size: 32 }));
  const body = view.newest?.body(false);
  if (body) describeBlock(values, JSON.parse(new TextDecoder().decode(body)));
  return values;
};

export const differencesOf = (ours: Values, theirs: Values): readonly string[] =>
  [...theirs].flatMap(([what, value]) =>
    ours.get(what) === value ? [] : [`${what}: ours ${ours.get(what)}, the node's ${value}`],
  );

export const isDeployed = async (ask: Ask, token: Address): Promise<boolean> =>
  parseData(String(await ask("eth_getCode", [token, "latest"])) as Hash).length > 0;
