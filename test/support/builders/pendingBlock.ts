import { createHash } from "node:crypto";
import type { PendingBlock, PendingChange, PendingLog, View } from "../../../src/core/view.ts";
import type { Address } from "../../../src/ethereum/hex.ts";
import { formatData, formatQuantity, type Hash, ZERO_ADDRESS, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { createHeads } from "./heads.ts";

export interface FakeTransaction {
  readonly name: string;
  readonly logs: readonly { readonly address: Address; readonly topics: readonly Hash[] }[];
  /** The receipt is not known yet. */
  readonly isLate?: boolean;
}

const encoder = new TextEncoder();
export const hashOfName = (name: string): Hash => formatData(createHash("sha256").update(name).digest());
const encode = (value: unknown) => encoder.encode(JSON.stringify(value));

/** Creates a pending block of a view from names of transactions and their logs. */
export const createPendingBlock = (
  number: bigint,
  index: number,
  transactions: readonly FakeTransaction[],
): PendingBlock => {
  const hash = hashOfName(`${number}-${index}-${transactions.map(({ name }) => name).join()}`);
  const all = transactions.flatMap(({ name, logs, isLate }, transactionIndex) =>
    isLate
      ? []
      : logs.map((log) => ({ ...log, data: "0x" as const, transactionHash: hashOfName(name), transactionIndex })),
  );
  const logs: readonly PendingLog[] = all.map((log, logIndex) => ({ ...log, logIndex }));
  const formatLog = (log: PendingLog, removed = false) =>
    encode({
      ...log,
      blockNumber: formatQuantity(number),
      blockHash: hash,
      transactionIndex: formatQuantity(log.transactionIndex),
      logIndex: formatQuantity(log.logIndex),
      removed,
    });
  const transactionOf = (at: number) => {
    const name = transactions[at]?.name;
    return name === undefined
      ? undefined
      : { hash: hashOfName(name), blockHash: null, transactionIndex: formatQuantity(at) };
  };
  return {
    number,
    hash,
    index,
    environment: {
      number,
      timestamp: number * 2n,
      gasLimit: 30_000_000n,
      baseFeePerGas: 7n,
      feeRecipient: ZERO_ADDRESS,
      prevRandao: ZERO_HASH,
      parentHash: ZERO_HASH,
      parentBeaconBlockRoot: ZERO_HASH,
      extraData: "0x",
    },
    gasUsed: 0n,
    blobGasUsed: 0n,
    transactionHashes: transactions.map(({ name }) => hashOfName(name)),
    body: (full) =>
      encode({
        number: formatQuantity(number),
        hash,
        transactions: transactions.map(({ name }, at) => (full ? transactionOf(at) : hashOfName(name))),
      }),
    transaction: (at) => transactionOf(at) && encode(transactionOf(at)),
    receipt: (at) =>
      transactions[at]?.isLate
        ? undefined
        : encode({
            transactionHash: transactionOf(at)?.hash,
            status: "0x1",
            gasUsed: "0x5208",
            logs: logs.filter(({ transactionIndex }) => transactionIndex === at),
          }),
    receipts: () => undefined,
    hasAllReceipts: transactions.every(({ isLate }) => isLate !== true),
    logs: (from = 0) => logs.filter(({ transactionIndex }) => transactionIndex >= from),
    formatLog,
  };
};

/** Creates a source of changes that the test publishes. */
export const createPendingSource = () => {
  const listeners = new Set<(change: PendingChange) => void>();
  const view: View = { heads: createHeads({ latest: 10n }) };
  return {
    subscribe: (listener: (change: PendingChange) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    emit: (change: Partial<Omit<PendingChange, "view">>) => {
      for (const listener of listeners) {
        listener({ view, extended: [], ...change });
      }
    },
  };
};
