import secp256k1 from "secp256k1";
import type { Address, Hash } from "../../../src/ethereum/hex.ts";
import { formatData, parseData } from "../../../src/ethereum/hex.ts";
import { keccak256, keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber, numberBytes } from "../../../src/ethereum/rlp.ts";
import type { EthereumFork, Rules } from "../../../src/ethereum/rules.ts";
import type { Authorization } from "../../../src/ethereum/transaction.ts";
import type { BlockEnvironment } from "../../../src/evm/engine.ts";
import type { TransactionMessage } from "../../../src/evm/transactionMessage.ts";
import { pick } from "../../support/builders/randomValues.ts";
import type { PlainAccount, PlainState } from "../../support/builders/stateRoot.ts";
import { isSince } from "./fuzzOpcodes.ts";
import { randomProgram, surveyProgram } from "./randomProgram.ts";

/** One random case: a state, a block, and transactions that run on it in order. */
export interface FuzzCase {
  readonly rules: Rules;
  readonly state: PlainState;
  readonly block: BlockEnvironment;
  readonly transactions: readonly TransactionMessage[];
}

const CONTRACTS = 5;
const TRANSACTIONS = 4;
const PRECOMPILES = 18;
const SLOTS = [0n, 1n, 2n, 3n, 1n << 200n];
const ETHER = 10n ** 18n;
const CHAIN_ID = 1n;
const BASE_FEE = 7n;
const MAX_GAS = 2_000_000;
const MAGIC = 0x05;
/** Contracts that execute all opcodes on words. */
const SURVEY_SHARE = 0.1;
const NOTHING = new Uint8Array(0);
const EMPTY: ReadonlyMap<Hash, Uint8Array> = new Map();

const addressOf = (value: bigint): Address => `0x${value.toString(16).padStart(40, "0")}`;
const slotOf = (value: bigint): Hash => `0x${value.toString(16).padStart(64, "0")}`;
/** The slots that programs name. */
export const SLOT_HASHES: readonly Hash[] = SLOTS.map(slotOf);
const contractAt = (at: number): bigint => 0xc0de_0000n + BigInt(at);
const COINBASE = 0xc01bba5en;
const ABSENT = 0xabcd_ef01n;

const keyAt = (at: number): Uint8Array => Uint8Array.from([...new Uint8Array(31), at]);
const addressOfKey = (key: Uint8Array): Address => {
  const point = secp256k1.publicKeyCreate(key, false).subarray(1);
  return formatData(keccak256(point).subarray(12));
};
const KEYS = [1, 2, 3].map(keyAt);
const ACCOUNTS = KEYS.map(addressOfKey);
/** Authorities without an account. Transactions and programs may call, fund and authorize them in any order (EIP-7702). */
const NEW_KEYS = [4, 5].map(keyAt);
const NEW_ACCOUNTS = NEW_KEYS.map(addressOfKey);

/** The account that delegates to code from Prague on, if any does (EIP-7702). */
const [, DELEGATING = addressOf(ABSENT)] = ACCOUNTS;

const account = (fields: Partial<PlainAccount>): PlainAccount => {
  const code = fields.code ?? NOTHING;
  return { nonce: 0n, balance: 0n, storage: EMPTY, ...fields, code, codeHash: keccak256Hex(code) };
};

/** Signs an authorization (EIP-7702). */
const authorize = (key: Uint8Array, chainId: bigint, address: Address, nonce: bigint): Authorization => {
  const digest = keccak256(
    concatBytes([
      Uint8Array.of(MAGIC),
      encodeList([encodeNumber(chainId), encodeBytes(parseData(address)), encodeNumber(nonce)]),
    ]),
  );
  const { signature, recid } = secp256k1.ecdsaSign(digest, key);
  const [r, s] = [signature.subarray(0, 32), signature.subarray(32)].map((part) => BigInt(formatData(part)));
  return { chainId, address, nonce, yParity: BigInt(recid), r: r ?? 0n, s: s ?? 0n };
};

/** Everything that programs may name. */
const addresses: readonly bigint[] = [
  ...Array.from({ length: CONTRACTS }, (_, at) => contractAt(at)),
  ...Array.from({ length: CONTRACTS }, (_, at) => contractAt(at)),
  ...ACCOUNTS.map(BigInt),
  ...NEW_ACCOUNTS.map(BigInt),
  ...Array.from({ length: PRECOMPILES }, (_, at) => BigInt(at)),
  COINBASE,
  ABSENT,
  0x100n,
];

const randomState = (random: () => number, fork: EthereumFork): PlainState => {
  const state = new Map<Address, PlainAccount>();
  for (const address of ACCOUNTS) {
    state.set(address, account({ balance: 1_000n * ETHER, nonce: BigInt(Math.floor(random() * 3)) }));
  }
  for (let at = 0; at < CONTRACTS; at++) {
    const slots = SLOTS.filter(() => random() < 0.5).map((slot) => [slotOf(slot), numberBytes(1n + slot)] as const);
    const create = random() < SURVEY_SHARE ? surveyProgram : randomProgram;
    const code = create({ random, fork, addresses, slots: SLOTS });
    const fields = { nonce: 1n, balance: random() < 0.5 ? 0n : 1_000n, code, storage: new Map(slots) };
    state.set(addressOf(contractAt(at)), account(fields));
  }
  if (isSince(fork, "prague") && random() < 0.6) {
    const target = parseData(addressOf(pick(random, addresses)));
    const code = concatBytes([Uint8Array.of(0xef, 0x01, 0x00), target]);
    state.set(DELEGATING, account({ nonce: 1n, balance: ETHER, code }));
  }
  return state;
};

const randomBlock = (random: () => number, fork: EthereumFork): BlockEnvironment => ({
  number: 1_000n,
  timestamp: 1_700_000_000n,
  coinbase: random() < 0.5 ? addressOf(COINBASE) : pick(random, ACCOUNTS),
  gasLimit: 30_000_000n,
  baseFee: isSince(fork, "london") ? BASE_FEE : 0n,
  prevRandao: slotOf(0x5eedn << 100n),
  difficulty: isSince(fork, "paris") ? 0n : 0x20000n,
  blobBaseFee: 1n,
  blockHash: (number) => keccak256Hex(numberBytes(number)),
});

const typesOf = (fork: EthereumFork): readonly number[] => [
  0,
  ...(isSince(fork, "berlin") ? [1] : []),
  ...(isSince(fork, "london") ? [2, 2] : []),
  ...(isSince(fork, "cancun") ? [3] : []),
  ...(isSince(fork, "prague") ? [4] : []),
];

const randomTarget = (random: () => number, fork: EthereumFork): Address => {
  const roll = random();
  if (roll < 0.7 || (roll < 0.8 && !isSince(fork, "prague"))) {
    return addressOf(contractAt(Math.floor(random() * CONTRACTS)));
  }
  if (roll < 0.8) {
    return pick(random, NEW_ACCOUNTS);
  }
  return roll < 0.9 ? DELEGATING : addressOf(pick(random, addresses));
};

/** A transaction. Its nonce is not checked. */
const randomTransaction = (random: () => number, fork: EthereumFork): TransactionMessage => {
  const type = pick(random, typesOf(fork));
  const options = { random, fork, addresses, slots: SLOTS };
  const isCreation = type < 3 && random() < 0.15;
  const to = randomTarget(random, fork);
  const bytes = Uint8Array.from({ length: Math.floor(random() * 100) }, () => Math.floor(random() * 256));
  const price = BASE_FEE + BigInt(Math.floor(random() * 3));
  return {
    type,
    from: pick(random, ACCOUNTS),
    to: isCreation ? null : to,
    nonce: 0n,
    gas: BigInt(Math.floor(random() < 0.7 ? 300_000 + random() * MAX_GAS : 21_000 + random() * 150_000)),
    value: random() < 0.5 ? 0n : BigInt(Math.floor(random() * 1_000)),
    input: isCreation ? randomProgram(options) : bytes,
    maxFeePerGas: type < 2 ? price : price + 5n,
    maxPriorityFeePerGas: type < 2 ? price : BigInt(Math.floor(random() * 5)),
    accessList: type === 0 || random() < 0.5 ? [] : [{ address: to, storageKeys: SLOTS.slice(0, 2).map(slotOf) }],
    maxFeePerBlobGas: type === 3 ? 2n : 0n,
    blobVersionedHashes: type === 3 ? [`0x01${"42".repeat(31)}`] : [],
    authorizationList:
      type === 4
        ? [
            authorize(pick(random, KEYS), pick(random, [0n, CHAIN_ID, 2n]), to, BigInt(Math.floor(random() * 4))),
            authorize(pick(random, [...KEYS, ...NEW_KEYS]), CHAIN_ID, pick(random, [addressOf(0n), to]), 0n),
            authorize(pick(random, NEW_KEYS), CHAIN_ID, to, BigInt(Math.floor(random() * 2))),
          ]
        : [],
  };
};

const BLOBS = { target: 6n, max: 9n, updateFraction: 5_007_716n };

export const randomCase = (random: () => number, fork: EthereumFork): FuzzCase => ({
  rules: { chainId: CHAIN_ID, fork, ...(isSince(fork, "cancun") ? { blobs: BLOBS } : {}) },
  state: randomState(random, fork),
  block: randomBlock(random, fork),
  transactions: Array.from({ length: TRANSACTIONS }, () => randomTransaction(random, fork)),
});
