import assert from "node:assert/strict";
import { test } from "node:test";
import { nextBaseFee } from "../../src/ethereum/blockFees.ts";
import { type Data, parseData } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import { fastLzLength, type L1Attributes, l1Cost, operatorFee, parseL1Attributes } from "../../src/ethereum/opFees.ts";
import { parseTransaction } from "../../src/ethereum/parseTransaction.ts";
import type { OpFork, Rules } from "../../src/ethereum/rules.ts";
import { readVector } from "./vectorFolder.ts";

type Values = Readonly<Record<string, string | number | undefined>>;
interface Vectors {
  readonly fastlz_length: readonly { readonly name: string; readonly input: Data; readonly length: number }[];
  readonly l1_attributes: readonly { readonly fork: string; readonly calldata: Data; readonly expect: Values }[];
  readonly deposit_transactions: readonly {
    readonly name: string;
    readonly raw: Data;
    readonly hash?: Data;
    readonly expect: Values;
  }[];
  readonly l1_fee: readonly (Values & { readonly fork: OpFork; readonly raw: Data })[];
  readonly operator_fee: readonly (Values & { readonly fork: OpFork })[];
  readonly base_fee: readonly { readonly fork: OpFork; readonly parent: Values; readonly next: number }[];
}

const vectors: Vectors = JSON.parse(readVector("flashblocks/op-fee-vectors.json"));
const rules = (op: OpFork): Rules => ({ chainId: 10n, fork: "prague", op });
const number = (value: string | number | undefined): bigint => BigInt(value ?? 0);

const attributes = (values: Values): L1Attributes => ({
  baseFee: number(values.l1BaseFee),
  blobBaseFee: number(values.blobBaseFee),
  baseFeeScalar: number(values.baseFeeScalar),
  blobBaseFeeScalar: number(values.blobBaseFeeScalar),
  overhead: 0n,
  scalar: 0n,
  operatorFeeScalar: number(values.operatorFeeScalar),
  operatorFeeConstant: number(values.operatorFeeConstant),
  daFootprintGasScalar: 400n,
});

/** Asserts that the L1 attributes have the values of the vector, as far as forebay parses them. */
const assertAttributes = (l1: L1Attributes, expect: Values): void => {
  for (const [name, value] of Object.entries(l1)) {
    if (expect[name] !== undefined) {
      assert.equal(value, number(expect[name]), name);
    }
  }
};

test("FastLZ lengths", () => {
  for (const { name, input, length } of vectors.fastlz_length) {
    assert.equal(fastLzLength(parseData(input)), length, name);
  }
});

test("L1 attributes of each fork", () => {
  for (const { calldata, expect } of vectors.l1_attributes) {
    assertAttributes(parseL1Attributes(parseData(calldata)), expect);
  }
});

test("deposits: hash, and the L1 attributes in them", () => {
  for (const { raw, hash, expect } of vectors.deposit_transactions) {
    const transaction = parseTransaction(parseData(raw));
    if (hash !== undefined) {
      assert.equal(keccak256Hex(parseData(raw)), hash);
    }
    assertAttributes(parseL1Attributes(transaction.input), expect);
  }
});

test("L1 data fee", () => {
  for (const vector of vectors.l1_fee) {
    const { fee, gasUsed } = l1Cost(rules(vector.fork), attributes(vector), parseData(vector.raw));
    assert.equal(fee, number(vector.l1Fee), vector.raw.slice(0, 40));
    if (vector.l1GasUsed !== undefined) {
      assert.equal(gasUsed, number(vector.l1GasUsed));
    }
  }
});

test("operator fee", () => {
  for (const vector of vectors.operator_fee) {
    assert.equal(operatorFee(rules(vector.fork), attributes(vector), number(vector.gas)), number(vector.fee));
  }
});

test("next base fee", () => {
  for (const { fork, parent, next } of vectors.base_fee) {
    const fees = {
      gasLimit: number(parent.gasLimit),
      gasUsed: number(parent.gasUsed),
      baseFeePerGas: number(parent.baseFeePerGas),
      blobGasUsed: 0n,
      extraData: parseData(String(parent.extraData) as Data),
    };
    // The chain of the vectors uses 50 and 10, and has zero for both in extraData.
    const defaults = fork === "jovian" ? { denominator: 50n, elasticity: 10n } : undefined;
    assert.equal(nextBaseFee(fees, rules(fork), defaults), BigInt(next));
  }
});
