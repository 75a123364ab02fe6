import type { BlockId, HeaderFields } from "../../core/heads.ts";
import type { EnvironmentOpcode } from "../../core/readSet.ts";
import { type Address, type Data, isData, isQuantity, ZERO_ADDRESS } from "../../ethereum/hex.ts";
import { type Call, createCall } from "../../jsonrpc/call.ts";

/** The environment that a node gives to a call without sender, gas and price. */
export interface NodeDefaults {
  /** The gas of a call that names none. */
  readonly gas: bigint;
  /** The sender and the price of such a call are zero, as they are here, and the sender pays no fee. */
  readonly hasZeroSender: boolean;
  /** Opcodes that return the value of the block's header. BASEFEE is zero for a call without a price. */
  readonly fromHeader: ReadonlySet<EnvironmentOpcode>;
}

/** The opcodes in the order of the result. Nodes without EIP-4844 fail at the last one. */
const OPCODES = [
  ["GAS", "5a"],
  ["ORIGIN", "32"],
  ["CALLER", "33"],
  ["GASPRICE", "3a"],
  ["COINBASE", "41"],
  ["TIMESTAMP", "42"],
  ["NUMBER", "43"],
  ["PREVRANDAO", "44"],
  ["GASLIMIT", "45"],
  ["BASEFEE", "48"],
  // The balance of the sender: ORIGIN, BALANCE.
  ["BALANCE", "3231"],
  ["BLOBBASEFEE", "4a"],
] as const;
type Name = (typeof OPCODES)[number][0];

/** An account that does not exist. */
const PROBE: Address = "0xf04eba7f04eba7f04eba7f04eba7f04eba700003";
/** Some nodes charge calls for L1 data, also without a price. Then an answer depends on the balance of its sender. */
const SENDER_BALANCE = "0xffffffffffffffffffffffff";
const WORD_BYTES = 32;
const DIGITS = 2 * WORD_BYTES;
/** Gas of a transaction before its first opcode, and that of GAS itself. */
const GAS_BEFORE = 21_002n;

const push2 = (value: number): string => `61${value.toString(16).padStart(4, "0")}`;

/** Returns code that stores the results of opcodes one after the other, and returns them: op, PUSH2 position, MSTORE. */
const probeCode = (count: number): Data => {
  const stores = OPCODES.slice(0, count).map(([, opcode], index) => `${opcode}${push2(index * WORD_BYTES)}52`);
  return `0x${stores.join("")}${push2(count * WORD_BYTES)}6000f3`;
};

/** Creates the calls that ask for the defaults after a block: with BLOBBASEFEE, and without. */
export const defaultsCalls = ({ hash }: BlockId): readonly Call[] =>
  [OPCODES.length, OPCODES.length - 1].map((count) =>
    createCall("eth_call", [
      { to: PROBE },
      { blockHash: hash },
      { [PROBE]: { code: probeCode(count) }, [ZERO_ADDRESS]: { balance: SENDER_BALANCE } },
    ]),
  );

const parseWords = (result: unknown): ReadonlyMap<Name, bigint> | undefined => {
  if (!isData(result) || result.length < 2 + (OPCODES.length - 1) * DIGITS) {
    return undefined;
  }
  const count = (result.length - 2) / DIGITS;
  return new Map(
    OPCODES.slice(0, count).map(([name], index) => [
      name,
      BigInt(`0x${result.slice(2 + index * DIGITS, 2 + (index + 1) * DIGITS)}`),
    ]),
  );
};

/** The header fields with the values of opcodes. */
const HEADER_FIELDS: readonly (readonly [Name & EnvironmentOpcode, string])[] = [
  ["COINBASE", "miner"],
  ["TIMESTAMP", "timestamp"],
  ["NUMBER", "number"],
  ["PREVRANDAO", "mixHash"],
  ["GASLIMIT", "gasLimit"],
];

/** Parses the results of `defaultsCalls`. Undefined: the node ignored the override, or failed. */
export const parseDefaults = (results: readonly unknown[], header: HeaderFields): NodeDefaults | undefined => {
  const words = results.map(parseWords).find((parsed) => parsed !== undefined);
  if (words === undefined) {
    return undefined;
  }
  const isZero = (name: Name): boolean => words.get(name) === 0n;
  const fromHeader = new Set<EnvironmentOpcode>(
    HEADER_FIELDS.filter(([name, field]) => {
      const value = header[field];
      return isQuantity(value) && BigInt(value) === words.get(name);
    }).map(([name]) => name),
  );
  if (isZero("BASEFEE")) {
    fromHeader.add("BASEFEE");
  }
  return {
    gas: (words.get("GAS") ?? 0n) + GAS_BEFORE,
    hasZeroSender:
      isZero("ORIGIN") && isZero("CALLER") && isZero("GASPRICE") && words.get("BALANCE") === BigInt(SENDER_BALANCE),
    fromHeader,
  };
};
