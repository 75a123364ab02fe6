import type { BlockId, HeaderFields } from "../../core/heads.ts";
import type { EnvironmentOpcode } from "../../core/readSet.ts";
import { type Address, type Data, isData, isQuantity, ZERO_ADDRESS } from "../../ethereum/hex.ts";
import { type Call, createCall } from "../../jsonrpc/call.ts";
import type { StateCost } from "../cost.ts";

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

export interface NodeDefaultsCacheOptions {
  /** Sends calls to one node. Returns one outcome for each, in order: a JSON value or an Error. */
  callNode(node: string, calls: readonly Call[]): Promise<readonly unknown[]>;
  headerOf(block: BlockId): HeaderFields | undefined;
  readonly cost: Pick<StateCost, "unitsOf" | "spend">;
  readonly nowMs?: () => number;
  /** Called if answers that a node gave before may differ from those that it gives now. */
  onOutdated(node: string): void;
}

/** A node may be replaced by another version, or get another option. */
const MAX_AGE_MS = 600_000;
/** A node that failed is asked again after this time. */
const RETRY_MS = 30_000;

interface Known {
  readonly untilMs: number;
  readonly defaults: Promise<NodeDefaults | undefined>;
  readonly found: NodeDefaults | undefined;
  /** The most gas of a call since `onOutdated`. */
  readonly mostGas: bigint;
}

/** Answers hold with half of the gas of a call. */
const LEAST_SHARE = 2n;

/** Asks each node for the environment of its calls, and caches it for ten minutes. */
export class NodeDefaultsCache {
  readonly #options: NodeDefaultsCacheOptions;
  readonly #nowMs: () => number;
  readonly #known = new Map<string, Known>();

  constructor(options: NodeDefaultsCacheOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** Returns undefined if the node does not show them. Never rejects. */
  async get(node: string, block: BlockId): Promise<NodeDefaults | undefined> {
    const known = this.#known.get(node);
    if (known !== undefined && this.#nowMs() < known.untilMs) {
      return known.defaults;
    }
    const defaults = this.#ask(node, block);
    // Until the node answers, the defaults of its last answer apply.
    const { found: before, mostGas = 0n } = known ?? {};
    this.#known.set(node, { defaults, found: before, mostGas, untilMs: this.#nowMs() + RETRY_MS });
    const found = await defaults;
    const maxAgeMs = found === undefined ? RETRY_MS : MAX_AGE_MS;
    const hasLess = found !== undefined && found.gas * LEAST_SHARE < mostGas;
    const gas = found?.gas ?? 0n;
    const most = hasLess || gas > mostGas ? gas : mostGas;
    this.#known.set(node, { defaults, found, mostGas: most, untilMs: this.#nowMs() + maxAgeMs });
    if (hasLess || (before?.hasZeroSender === true && found?.hasZeroSender === false)) {
      this.#options.onOutdated(node);
    }
    return found;
  }

  /** Returns the defaults if the node was asked before. If they are old, it is asked again in the background. */
  known(node: string, block: BlockId): NodeDefaults | undefined {
    const known = this.#known.get(node);
    if (known !== undefined && this.#nowMs() >= known.untilMs) {
      void this.get(node, block);
    }
    return known?.found;
  }

  async #ask(node: string, block: BlockId): Promise<NodeDefaults | undefined> {
    const { callNode, headerOf, cost } = this.#options;
    const header = headerOf(block);
    if (header === undefined) {
      return undefined;
    }
    const calls = defaultsCalls(block);
    cost.spend("learning", calls.length * cost.unitsOf("eth_call"));
    const outcomes = await callNode(node, calls).catch(() => []);
    return parseDefaults(outcomes, header);
  }
}
