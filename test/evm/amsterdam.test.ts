import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Address, type Data, formatData, type Hash, parseData, type Quantity } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import { numberBytes, stripZeros } from "../../src/ethereum/rlp.ts";
import type { AccessListEntry } from "../../src/ethereum/transaction.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { BlockEnvironment } from "../../src/evm/engine.ts";
import { TransactionError } from "../../src/evm/executionErrors.ts";
import type { TransactionMessage } from "../../src/evm/transactionMessage.ts";
import { type PlainState, readerOf, stateRoot, withChanges } from "../support/builders/stateRoot.ts";

/** Transactions of Amsterdam with the results of go-ethereum. The file names its version. */
const FILE = join(import.meta.dirname, "amsterdam.json");

type Quantities<T> = Readonly<Record<keyof T, Quantity>>;

interface RecordedAccount {
  readonly nonce: Quantity;
  readonly balance: Quantity;
  readonly code: Data;
  readonly storage: Readonly<Record<Hash, Hash>>;
}
type RecordedState = Readonly<Record<Address, RecordedAccount>>;

interface RecordedTransaction {
  readonly type: number;
  readonly from: Address;
  readonly to: Address | null;
  readonly nonce: Quantity;
  readonly gas: Quantity;
  readonly value: Quantity;
  readonly input: string;
  readonly maxFeePerGas: Quantity;
  readonly maxPriorityFeePerGas: Quantity;
  readonly accessList: readonly AccessListEntry[];
  readonly authorizationList: readonly (Quantities<TransactionMessage["authorizationList"][number]> & {
    readonly address: Address;
  })[];
  /** geth's message lifts the cap of execution, as in eth_call. */
  readonly liftsGasCap?: boolean;
}

interface RecordedResult {
  readonly error?: string;
  readonly status: string;
  readonly halt?: string;
  readonly returnData: string;
  readonly gasUsed: Quantity;
  readonly maxUsedGas: Quantity;
  readonly executionGas: Quantity;
  readonly stateGas: Quantity;
  readonly created?: Address;
  readonly logs: readonly { readonly address: Address; readonly topics: readonly Hash[]; readonly data: Data }[];
  readonly root: Hash;
}

interface Recorded {
  readonly block: Quantities<Omit<BlockEnvironment, "blockHash">> & Pick<BlockEnvironment, "coinbase" | "prevRandao">;
  readonly state: RecordedState;
  readonly transaction: RecordedTransaction;
  readonly cases: readonly {
    readonly name: string;
    readonly state: RecordedState;
    readonly transaction: Partial<RecordedTransaction>;
    readonly expected: RecordedResult;
  }[];
}

const recorded = JSON.parse(readFileSync(FILE, "utf8")) as Recorded;
const RULES = { chainId: 1n, fork: "amsterdam" } as const;
const engine = (await createEngines("fast"))(RULES);

const block: BlockEnvironment = {
  number: BigInt(recorded.block.number),
  timestamp: BigInt(recorded.block.timestamp),
  coinbase: recorded.block.coinbase,
  gasLimit: BigInt(recorded.block.gasLimit),
  baseFee: BigInt(recorded.block.baseFee),
  prevRandao: recorded.block.prevRandao,
  blobBaseFee: BigInt(recorded.block.blobBaseFee),
  slotNumber: BigInt(recorded.block.slotNumber ?? 0),
  blockHash: (number) => keccak256Hex(numberBytes(number)),
};

/** `00*5` has five zero bytes. */
const bytesOf = (text: string): Uint8Array => {
  const [byte = "", count] = text.split("*");
  return parseData(count === undefined ? (text as Data) : `0x${byte.repeat(Number(count))}`);
};

const stateOf = (...parts: readonly RecordedState[]): PlainState =>
  new Map(
    parts.flatMap((part) =>
      Object.entries(part).map(([address, { nonce, balance, code: data, storage }]) => {
        const code = parseData(data);
        const slots = Object.entries(storage).map(
          ([slot, value]) => [slot as Hash, stripZeros(parseData(value))] as const,
        );
        const fields = { nonce: BigInt(nonce), balance: BigInt(balance), code, codeHash: keccak256Hex(code) };
        return [address as Address, { ...fields, storage: new Map(slots) }] as const;
      }),
    ),
  );

const messageOf = (transaction: RecordedTransaction): TransactionMessage => ({
  type: transaction.type,
  from: transaction.from,
  to: transaction.to,
  nonce: BigInt(transaction.nonce),
  gas: BigInt(transaction.gas),
  value: BigInt(transaction.value),
  input: bytesOf(transaction.input),
  maxFeePerGas: BigInt(transaction.maxFeePerGas),
  maxPriorityFeePerGas: BigInt(transaction.maxPriorityFeePerGas),
  accessList: transaction.accessList,
  maxFeePerBlobGas: 0n,
  blobVersionedHashes: [],
  authorizationList: transaction.authorizationList.map(({ address, chainId, nonce, yParity, r, s }) => ({
    address,
    chainId: BigInt(chainId),
    nonce: BigInt(nonce),
    yParity: BigInt(yParity),
    r: BigInt(r),
    s: BigInt(s),
  })),
});

for (const { name, state: own, transaction, expected } of recorded.cases) {
  test(`Amsterdam as in go-ethereum: ${name}`, async () => {
    const before = stateOf(recorded.state, own);
    const state = engine.createState(readerOf(before, block.blockHash));
    const { liftsGasCap = false, ...fields } = { ...recorded.transaction, ...transaction };
    const message = messageOf(fields);
    const checks = { nonce: true, sender: !liftsGasCap, freeGas: false, liftsExecutionCap: liftsGasCap };
    const run = engine.transact({ state, block }, message, { checks });
    if (expected.error !== undefined) {
      await assert.rejects(run, (error) => error instanceof TransactionError && error.message === expected.error);
      return;
    }
    const { status, halt, gasUsed, maxUsedGas, blockGas, returnData, logs, created } = await run;
    assert.deepEqual(
      { status, halt, gasUsed, maxUsedGas, blockGas, created },
      {
        status: expected.status,
        halt: expected.halt,
        gasUsed: BigInt(expected.gasUsed),
        maxUsedGas: BigInt(expected.maxUsedGas),
        blockGas: { execution: BigInt(expected.executionGas), state: BigInt(expected.stateGas) },
        created: expected.created,
      },
    );
    assert.deepEqual(returnData, bytesOf(expected.status === "halt" ? "0x" : expected.returnData));
    assert.deepEqual(
      logs.map(({ address, topics, data }) => ({ address, topics, data })),
      expected.logs,
    );
    assert.equal(formatData(await stateRoot(withChanges(before, state.changes()))), expected.root);
  });
}
