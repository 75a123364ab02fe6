import type { StateChanges } from "../../src/core/stateReader.ts";
import type { Address, Hash } from "../../src/ethereum/hex.ts";
import { mergeChanges } from "../../src/evm/reads/writtenState.ts";
import {
  type Account,
  createWitnessFetch,
  executeRecording,
  findTruth,
  framesOf,
  hashesOf,
  MESSAGES_OF_BLOCK,
  positionOf,
  type Recording,
  type Truth,
} from "./playBuilder.ts";

/** An account or a slot whose value the recorded blocks change. */
interface Watched {
  readonly accounts: readonly Address[];
  readonly slots: readonly (readonly [Address, Hash])[];
}

export interface LogId {
  readonly transactionHash: string;
  readonly logIndex: string;
}

/** The truth of a recording: each value after each message, and the sealed content. */
export interface RecordedTruth {
  readonly watched: Watched;
  /** Nonce, balance and slots of the watched accounts after a number of messages, as the client reads them. */
  valuesAt(position: number): readonly string[];
  /** The response of a node to a read of a watched value after a sealed block. */
  knownAt(number: number, method: string, params: readonly unknown[]): string | undefined;
  /** The hashes of a sealed block's transactions. */
  transactionsOf(number: number): readonly string[];
  /** The logs of a sealed block, of its first transactions. */
  logsOf(number: number, transactions: number): readonly string[];
  /** Numbers of messages after which a block has these transactions. Several, if messages are empty. */
  positionsOf(number: number, transactions: number): readonly number[];
}

export const logId = ({ transactionHash, logIndex }: LogId): string => `${transactionHash}:${Number(logIndex)}`;

/** Returns the keys that change most often. */
const busiest = <T>(counts: ReadonlyMap<string, { readonly key: T; readonly count: number }>, most: number): T[] =>
  [...counts.values()]
    .toSorted((a, b) => b.count - a.count)
    .slice(0, most)
    .map(({ key }) => key);

const ACCOUNTS = 8;
const SLOTS = 6;
const quantity = (value: bigint): string => `0x${value.toString(16)}`;
const word = (value: Uint8Array): string => `0x${Buffer.from(value).toString("hex").padStart(64, "0")}`;

const watch = (truth: Truth, layers: readonly StateChanges[]): Watched => {
  const accounts = new Map<string, { key: Address; count: number }>();
  for (const [position, after] of truth.entries()) {
    for (const [key, account] of after) {
      const before = truth[position - 1]?.get(key) ?? account;
      const isChanged = before.nonce !== account.nonce || before.balance !== account.balance;
      accounts.set(key, { key, count: (accounts.get(key)?.count ?? 0) + (isChanged ? 1 : 0) });
    }
  }
  const slots = new Map<string, { key: readonly [Address, Hash]; count: number }>();
  for (const [address, { slots: written }] of layers.flatMap((layer) => [...layer])) {
    for (const slot of written.keys()) {
      const name = address + slot;
      slots.set(name, { key: [address, slot], count: (slots.get(name)?.count ?? 0) + 1 });
    }
  }
  return { accounts: busiest(accounts, ACCOUNTS), slots: busiest(slots, SLOTS) };
};

/** Returns the slots after each message. Position 0 is the state before the recording. */
const slotValues = async (
  fetch: ReturnType<typeof createWitnessFetch>,
  { parent }: Recording,
  slots: Watched["slots"],
  layers: readonly StateChanges[],
): Promise<readonly (readonly string[])[]> => {
  const base = { number: BigInt(parent.number), hash: parent.hash };
  const read = await fetch.stateAt(base).read({ accounts: [], slots, blockHashes: [] }, AbortSignal.timeout(60_000));
  const start = slots.map(([address, slot]) => {
    const found = read.slots.find(([a, s]) => a === address && s === slot)?.[2];
    return word(found ?? new Uint8Array(0));
  });
  const values = [start];
  for (const [at] of layers.entries()) {
    const merged = mergeChanges(layers.slice(0, at + 1));
    values.push(
      slots.map(([address, slot], position) => {
        const written = merged.get(address)?.slots.get(slot);
        return written === undefined ? (start[position] ?? "") : word(written);
      }),
    );
  }
  return values;
};

export const createRecordedTruth = async (recording: Recording): Promise<RecordedTruth> => {
  const fetch = createWitnessFetch(recording);
  const layers = await executeRecording(recording, fetch);
  const truth = await findTruth(recording, fetch);
  const watched = watch(truth, layers);
  const slots = await slotValues(fetch, recording, watched.slots, layers);
  const blockOf = (number: number) => recording.blocks.find((block) => Number(block.number) === number);
  const transactionsOf = (number: number): readonly string[] => {
    const block = blockOf(number);
    return block && recording.receipts.has(block.hash) ? hashesOf(block) : [];
  };
  const counts = new Map<number, number>();
  let count = 0;
  for (const { number, index, message } of framesOf(recording)) {
    count = (index === 0 ? 0 : count) + message.transactions.length;
    counts.set(positionOf(number, index), count);
  }
  const accountAt = (position: number, address: Address): Account =>
    truth[position]?.get(address) ?? { nonce: 0n, balance: 0n };
  const knownAt: RecordedTruth["knownAt"] = (number, method, [address, slot]) => {
    const position = Math.max(0, positionOf(number, MESSAGES_OF_BLOCK - 1));
    if (method === "eth_getStorageAt") {
      const at = watched.slots.findIndex(([a, s]) => a === address && s === slot);
      return slots[position]?.[at];
    }
    const account = truth[position]?.get(address as Address);
    return account && quantity(method === "eth_getBalance" ? account.balance : account.nonce);
  };
  return {
    watched,
    knownAt,
    valuesAt: (position) => [
      ...watched.accounts.flatMap((address) => {
        const { nonce, balance } = accountAt(position, address);
        return [quantity(nonce), quantity(balance)];
      }),
      ...(slots[position] ?? []),
    ],
    transactionsOf,
    logsOf: (number, transactions) => {
      const shown = new Set(transactionsOf(number).slice(0, transactions));
      const receipts = recording.receipts.get(blockOf(number)?.hash ?? "0x") ?? [];
      return receipts
        .flatMap(({ logs }) => logs as readonly LogId[])
        .filter(({ transactionHash }) => shown.has(transactionHash))
        .map(logId);
    },
    positionsOf: (number, transactions) =>
      number === Number(recording.parent.number)
        ? [0]
        : Array.from({ length: MESSAGES_OF_BLOCK }, (_, index) => positionOf(number, index)).filter(
            (position) => counts.get(position) === transactions,
          ),
  };
};
