import { encodeAbiParameters, encodeFunctionData, keccak256, pad, toHex } from "viem";
import { type Address, formatQuantity, type Hash } from "../../../src/ethereum/hex.ts";
import { CODES } from "../../../src/jsonrpc/rpcError.ts";
import { TOKEN_ABI } from "../../devnet/token.ts";
import { devAccounts, recipientOf } from "../../devnet/traffic.ts";
import { pick } from "../../support/builders/randomValues.ts";

/** One batch of calls; each outcome is the response's `result` or `error`. */
export type Batch = (calls: readonly (readonly [method: string, ...params: unknown[]])[]) => Promise<Answered>;
export interface Answered {
  readonly outcomes: readonly Outcome[];
  /** The header `x-forebay-pending`, if forebay answered. */
  readonly mode: string | undefined;
}
export interface Outcome {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Texts of faults of forebay itself. */
const FAULTS = ["Internal error", "execution failed"];

/** Whether a call has no outcome: forebay refused it because too many simulations run, or had no value of a node in time. */
export const hasFailed = ({ error }: Outcome): boolean =>
  error?.code === CODES.INTERNAL && !FAULTS.includes(error.message);

export const createBatch =
  (url: string): Batch =>
  async (calls) => {
    const body = JSON.stringify(calls.map(([method, ...params], id) => ({ jsonrpc: "2.0", id, method, params })));
    const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    const answers = (await response.json()) as readonly (Outcome & { readonly id: number })[];
    const byId = new Map(answers.map((answer) => [answer.id, answer]));
    const mode = response.headers.get("x-forebay-pending") ?? undefined;
    return { mode, outcomes: calls.map((_, id) => byId.get(id) ?? {}) };
  };

/** The state that is compared at `pending`: accounts, and slots of one contract. */
export interface Watched {
  readonly accounts: readonly Address[];
  readonly contract: Address;
  readonly slots: readonly Hash[];
}

const BALANCES_SLOT = 1n;
const STORED_SLOT = 3n;
const RECIPIENTS = 97;
const SHOWN_RECIPIENTS = 12;
const STORED_KEYS = 17;
const SLOTS = 200;
/** Vaults of priority fees, base fees, L1 fees and operator fees. */
const VAULTS = ["11", "19", "1a", "1b"].map((last): Address => `0x42${"00".repeat(18)}${last}`);

const lower = (address: string): Address => `0x${address.slice(2).toLowerCase()}`;
const slotOf = (key: Hash, slot: bigint): Hash =>
  keccak256(encodeAbiParameters([{ type: "bytes32" }, { type: "uint256" }], [key, slot]));
const owners = devAccounts.map(({ address }) => lower(address));

/** Returns the state that the devnet's traffic changes: senders, recipients, vaults, and 200 slots of its token. */
export const watchTraffic = (token: Address): Watched => {
  const recipients = Array.from({ length: RECIPIENTS }, (_, at) => recipientOf(at));
  const holders = [...owners, ...recipients].map((address) => slotOf(pad(address), BALANCES_SLOT));
  const stored = Array.from({ length: STORED_KEYS }, (_, at) => slotOf(toHex(at, { size: 32 }), STORED_SLOT));
  const plain = Array.from({ length: SLOTS - holders.length - stored.length }, (_, at) => toHex(at, { size: 32 }));
  return {
    accounts: [...owners, ...recipients.slice(0, SHOWN_RECIPIENTS), ...VAULTS, lower(token)],
    contract: lower(token),
    slots: [...holders, ...stored, ...plain],
  };
};

/** The compared fields of a block. anvil computes `size` without withdrawals, and roots and hash with other deposit nonces. */
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

/** The values at `pending` at one moment, by name, as a node returns them. */
export interface PendingValues {
  readonly hash: string;
  readonly mode: string | undefined;
  readonly transactions: string;
  readonly values: ReadonlyMap<string, string>;
  /** Reads that had no value. */
  readonly failed: number;
  /** Outcomes of the other calls in the same batch. */
  readonly calls: readonly Outcome[];
}

export type PendingCall = readonly [method: string, ...params: unknown[]];

/** Reads all values in one batch, so that they are from one view. */
export const readPending = async (
  batch: Batch,
  { accounts, contract, slots }: Watched,
  calls: readonly PendingCall[],
): Promise<PendingValues> => {
  const asked: PendingCall[] = [
    ["eth_getBlockByNumber", "pending", false],
    ["eth_getStorageValues", { [contract]: slots }, "pending"],
    ["eth_getCode", contract, "pending"],
    ["eth_getStorageAt", contract, slots[0], "pending"],
    ["eth_getBlockTransactionCountByNumber", "pending"],
    ...accounts.map((address): PendingCall => ["eth_getBalance", address, "pending"]),
    ...accounts.map((address): PendingCall => ["eth_getTransactionCount", address, "pending"]),
  ];
  const { outcomes, mode } = await batch([...asked, ...calls]);
  const values = new Map<string, string>();
  const [block, storage] = outcomes.map(({ result }) => result) as [
    Record<string, unknown> | undefined,
    Record<string, string[]> | undefined,
  ];
  for (const field of BLOCK_FIELDS) {
    values.set(`block ${field}`, String(block?.[field]));
  }
  const [words = []] = Object.values(storage ?? {});
  for (const [at, slot] of slots.entries()) {
    values.set(`slot ${slot}`, String(words[at]));
  }
  for (const [at, [method, ...params]] of asked.entries()) {
    if (at >= 2) {
      values.set(`${method} ${params[0]}`, JSON.stringify(outcomes[at]?.result ?? outcomes[at]?.error));
    }
  }
  return {
    hash: String(block?.hash),
    mode,
    transactions: String(block?.transactions),
    failed: outcomes.slice(0, asked.length).filter(hasFailed).length,
    values,
    calls: outcomes.slice(asked.length),
  };
};

/** Reads the node's own pending block; undefined if it changed during the batch, which a node does not answer atomically. */
export const readNodePending = async (
  batch: Batch,
  watched: Watched,
  calls: readonly PendingCall[],
): Promise<PendingValues | undefined> => {
  const identify = async (): Promise<string> => {
    const { outcomes } = await batch([["eth_getBlockByNumber", "pending", false]]);
    const block = outcomes[0]?.result as Record<string, unknown>;
    return `${block.number} ${block.transactions}`;
  };
  const before = await identify();
  const read = await readPending(batch, watched, calls);
  return before === (await identify()) ? read : undefined;
};

/** Creates calls that read, write, create and revert, each as eth_call, eth_estimateGas and eth_createAccessList. */
export const randomCalls = (token: Address, count: number, random: () => number): readonly PendingCall[] =>
  Array.from({ length: count }, (): PendingCall[] => {
    const from = pick(random, owners);
    const to = recipientOf(Math.floor(random() * RECIPIENTS));
    const amount = BigInt(Math.floor(random() * 1_000));
    const ofToken = (data: `0x${string}`) => ({ from, to: token, data, gas: "0x4c4b40" });
    const transaction = pick(random, [
      ofToken(encodeFunctionData({ abi: TOKEN_ABI, functionName: "balanceOf", args: [to] })),
      ofToken(encodeFunctionData({ abi: TOKEN_ABI, functionName: "transfer", args: [to, amount] })),
      ofToken(encodeFunctionData({ abi: TOKEN_ABI, functionName: "transfer", args: [to, 2n ** 200n] })),
      ofToken(encodeFunctionData({ abi: TOKEN_ABI, functionName: "store", args: [amount % 17n, amount] })),
      ofToken(encodeFunctionData({ abi: TOKEN_ABI, functionName: "fail" })),
      { from, to, value: formatQuantity(amount), gas: "0x4c4b40" },
      { from, data: "0x600160005360016000f3", gas: "0x4c4b40" },
    ]);
    return [
      ["eth_call", transaction, "pending"],
      ["eth_estimateGas", transaction, "pending"],
      ["eth_createAccessList", transaction, "pending"],
    ];
  }).flat();

const ESTIMATE_TOLERANCE = 0.02;

const describeOutcome = ({ result, error }: Outcome): string =>
  error ? `error ${error.code} ${JSON.stringify(error.data)}` : JSON.stringify(result);

/** Sorts an access list, because it is a set. */
const normalList = (result: unknown): string => {
  const { accessList } = result as { accessList: readonly { address: string; storageKeys: readonly string[] }[] };
  const entries = accessList.map(
    ({ address, storageKeys }) => [address.toLowerCase(), storageKeys.toSorted()] as const,
  );
  return JSON.stringify(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
};

/** For eth_createAccessList of a failing call, geth returns the list and the error text, and anvil returns an error. */
const isFailedList = (ours: Outcome, theirs: Outcome): boolean => {
  const { error } = (ours.result ?? {}) as { readonly error?: unknown };
  return error !== undefined && error === theirs.error?.message;
};

const isSameOutcome = (method: string, ours: Outcome, theirs: Outcome): boolean => {
  if (method === "eth_createAccessList" && theirs.error) {
    return isFailedList(ours, theirs);
  }
  if (ours.error || theirs.error) {
    return ours.error?.code === 3 && describeOutcome(ours) === describeOutcome(theirs);
  }
  if (method === "eth_estimateGas") {
    return Math.abs(Number(ours.result) / Number(theirs.result) - 1) <= ESTIMATE_TOLERANCE;
  }
  if (method === "eth_createAccessList") {
    return normalList(ours.result) === normalList(theirs.result);
  }
  return ours.result === theirs.result;
};

export const differencesOf = (
  ours: PendingValues,
  theirs: PendingValues,
  calls: readonly PendingCall[],
): readonly string[] => [
  ...[...theirs.values].flatMap(([what, value]) =>
    ours.values.get(what) === value ? [] : [`${what}: ours ${ours.values.get(what)}, the node's ${value}`],
  ),
  ...calls.flatMap(([method, transaction], at) => {
    const [mine = {}, its = {}] = [ours.calls[at], theirs.calls[at]];
    if (isSameOutcome(method, mine, its)) {
      return [];
    }
    return [
      `${method} ${JSON.stringify(transaction)}: ours ${JSON.stringify(mine)}, the node's ${JSON.stringify(its)}`,
    ];
  }),
];
