import { RLP } from "@ethereumjs/rlp";
import { formatTransaction } from "../../../src/ethereum/formatTransaction.ts";
import { formatData, parseData } from "../../../src/ethereum/hex.ts";
import { orderedTrieRoot } from "../../../src/ethereum/orderedTrie.ts";
import { parseTransaction } from "../../../src/ethereum/parseTransaction.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber } from "../../../src/ethereum/rlp.ts";
import { InvalidTransaction } from "../../../src/ethereum/transaction.ts";
import { writesOfAccessList } from "../../../src/state/sources/accessListWrites.ts";
import { hashBlockAccessList, parseBlockAccessList } from "../../../src/verification/blockAccessList.ts";
import { MalformedField } from "../../../src/verification/jsonFields.ts";
import { referenceTrieRoot } from "../../support/builders/referenceTrie.ts";
import { readCorpus } from "../engine/corpus.ts";
import { mutateBytes } from "../engine/mutateBytes.ts";
import { mutateJson } from "../engine/mutateJson.ts";
import type { Choices } from "../engine/random.ts";
import { type CreateTarget, Finding } from "../engine/target.ts";

type Nested = Uint8Array | Nested[];

const LENGTHS = [0, 1, 2, 20, 31, 32, 54, 55, 56, 57, 255, 256, 257, 70_000];
const TYPES = [1, 2, 3, 4, 0x7e];
const MAX_LEAVES = 140;

const bytesOf = (choices: Choices): Uint8Array => {
  const length = choices.chance(0.9) ? choices.pick(LENGTHS.slice(0, 9)) : choices.pick(LENGTHS);
  return new Uint8Array(length).map(() => choices.below(256));
};

const nestedOf = (choices: Choices, depth: number): Nested =>
  depth === 0 || choices.chance(0.6)
    ? bytesOf(choices)
    : Array.from({ length: choices.below(5) }, () => nestedOf(choices, depth - 1));

const encode = (value: Nested): Uint8Array =>
  Array.isArray(value) ? encodeList(value.map(encode)) : encodeBytes(value);

/** The encoding must be that of another library. */
const checkEncoding = (choices: Choices): void => {
  const value = nestedOf(choices, 4);
  const ours = formatData(encode(value));
  const theirs = formatData(RLP.encode(value));
  if (ours !== theirs) {
    throw new Finding(`encoded as ${ours.slice(0, 80)} instead of ${theirs.slice(0, 80)}`, theirs);
  }
  const number = choices.pick([BigInt(choices.below(2 ** 32)), 1n << BigInt(choices.below(256)), 0n]);
  if (formatData(encodeNumber(number)) !== formatData(RLP.encode(number))) {
    throw new Finding(`the number ${number}`, number.toString());
  }
};

/** The fields of a transaction of any type, mostly of plausible lengths. */
const randomTransaction = (choices: Choices): Uint8Array => {
  const fields = Array.from({ length: choices.pick([9, 11, 12, 13, 14]) }, () =>
    choices.chance(0.15)
      ? nestedOf(choices, 2)
      : choices.chance(0.3)
        ? new Uint8Array(20)
        : bytesOf(choices).subarray(0, 8),
  );
  const payload = encode(fields);
  return choices.chance(0.3) ? payload : concatBytes([Uint8Array.of(choices.pick(TYPES)), payload]);
};

/** A transaction is rejected with InvalidTransaction, or has its own bytes, and can be formatted. */
const checkTransaction = (raw: Uint8Array): void => {
  const input = formatData(raw);
  try {
    const transaction = parseTransaction(raw);
    const place = { blockHash: null, blockNumber: 1n, transactionIndex: 0, sender: `0x${"00".repeat(20)}` } as const;
    JSON.stringify(formatTransaction(transaction, { ...place, baseFee: 7n }));
  } catch (error) {
    if (!(error instanceof InvalidTransaction)) {
      throw new Finding(`not InvalidTransaction: ${String(error)}`, input, error);
    }
  }
};

const ACCESS_LIST = [
  {
    address: `0x${"11".repeat(20)}`,
    storageChanges: [{ key: "0x1", changes: [{ index: "0x1", value: "0x2" }] }],
    storageReads: ["0x3"],
    balanceChanges: [{ index: "0x1", value: "0x5" }],
    nonceChanges: [{ index: "0x1", value: "0x5" }],
    codeChanges: [{ index: "0x1", code: "0x6000" }],
  },
];

const checkAccessList = (choices: Choices): void => {
  const value = mutateJson(ACCESS_LIST, choices);
  try {
    const list = parseBlockAccessList(value);
    hashBlockAccessList(list);
    writesOfAccessList(list);
  } catch (error) {
    if (!(error instanceof MalformedField)) {
      throw new Finding(String(error), value, error);
    }
  }
};

const checkTrie = async (choices: Choices): Promise<void> => {
  const leaves = Array.from({ length: choices.below(MAX_LEAVES) }, () => bytesOf(choices).subarray(0, 300));
  const values = leaves.map((leaf) => (leaf.length === 0 ? Uint8Array.of(1) : leaf));
  const [ours, theirs] = [orderedTrieRoot(values), await referenceTrieRoot(values)];
  if (ours !== theirs) {
    throw new Finding(`root ${ours} instead of ${theirs}`, values.map(formatData));
  }
};

/** RLP, transactions, tries and block access lists, compared with other libraries. */
export const createTarget: CreateTarget = async () => {
  const corpus = readCorpus("rlp").map((text) => parseData(text.toString().trim() as `0x${string}`));
  return {
    run: async (choices, index) => {
      if (index % 200 === 0) {
        return checkTrie(choices);
      }
      switch (choices.below(4)) {
        case 0:
          return checkEncoding(choices);
        case 1:
          return checkAccessList(choices);
        case 2:
          checkTransaction(randomTransaction(choices));
          return undefined;
        default:
          checkTransaction(mutateBytes(choices.pick(corpus), choices));
          return undefined;
      }
    },
  };
};
