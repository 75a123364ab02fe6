import type { Address, Data } from "../../../src/ethereum/hex.ts";
import { pick } from "../../support/builders/randomValues.ts";
import type { CallObject, Overrides } from "../chain/nodeAnswers.ts";
import { SLOTS, STAND_IN_ACCOUNTS, STAND_IN_STORAGES, STAND_IN_SYSTEM } from "../state/randomStateBlocks.ts";
import { formatReturnData } from "../state/standInCalls.ts";
import type { StandInChain } from "../state/standInChain.ts";
import { FAILED, type ReadKind } from "./comparedReads.ts";

/** A call without its block. */
interface RandomCall {
  readonly call: CallObject;
  readonly overrides: Overrides;
}

const READER: Address = `0x${"ca".repeat(20)}`;
const MAX_READS = 4;
/** Few, so that each is sent at many blocks. */
const DIFFERENT_CALLS = 80;
const WORD_BYTES = 32;
/** BALANCE, EXTCODESIZE, EXTCODEHASH. */
const ACCOUNT_OPCODES = ["31", "3b", "3f"];
/** ORIGIN, GASPRICE, CHAINID, NUMBER, TIMESTAMP, COINBASE, GASLIMIT, SELFBALANCE. */
const ENVIRONMENT_OPCODES = ["32", "3a", "46", "43", "42", "41", "45", "47"];

/** Returns code that stores the results of these programs, and returns them all. */
const returning = (programs: readonly string[]): Data => {
  const position = (index: number) => `61${(index * WORD_BYTES).toString(16).padStart(4, "0")}`;
  const stores = programs.map((program, index) => `${program}${position(index)}52`);
  return `0x${stores.join("")}${position(programs.length)}5ff3`;
};

const readAccount = (random: () => number): string =>
  `73${pick(random, STAND_IN_ACCOUNTS).slice(2)}${pick(random, ACCOUNT_OPCODES)}`;

const readSlot = (random: () => number): string =>
  `60${Math.floor(random() * SLOTS)
    .toString(16)
    .padStart(2, "0")}54`;

/** CALL with a value of 1 to an account, with 50,000 gas and no data. Its result is whether the call succeeded. */
const payAccount = (random: () => number): string =>
  `5f5f5f5f600173${pick(random, STAND_IN_ACCOUNTS).slice(2)}61c350f1`;

/** CREATE2 of code that returns nothing. Its result is the address, or zero. */
const createAccount = (random: () => number): string =>
  `60${Math.floor(random() * 4)
    .toString(16)
    .padStart(2, "0")}5f5f5ff5`;

const repeat = (random: () => number, create: (random: () => number) => string): readonly string[] =>
  Array.from({ length: 1 + Math.floor(random() * MAX_READS) }, () => create(random));

/** Creates a call that reads accounts, slots, codes or the block of a stand-in chain. */
const randomCall = (random: () => number): RandomCall => {
  const gas: Data = "0x100000";
  const chance = random();
  if (chance < 0.35) {
    return { call: { to: READER, gas }, overrides: { [READER]: { code: returning(repeat(random, readAccount)) } } };
  }
  if (chance < 0.7) {
    const to = pick(random, [...STAND_IN_STORAGES, ...STAND_IN_SYSTEM]);
    return { call: { to, gas }, overrides: { [to]: { code: returning(repeat(random, readSlot)) } } };
  }
  if (chance < 0.8) {
    const to = pick(random, STAND_IN_ACCOUNTS);
    const programs = [...repeat(random, payAccount), ...repeat(random, createAccount)];
    return { call: { to, gas }, overrides: { [to]: { code: returning(programs) } } };
  }
  if (chance < 0.9) {
    const programs = [pick(random, ENVIRONMENT_OPCODES), readAccount(random)];
    return { call: { to: READER, gas }, overrides: { [READER]: { code: returning(programs) } } };
  }
  // The account's own code: none, that of a contract, or a delegation.
  const from = pick(random, STAND_IN_ACCOUNTS);
  const value = random() < 0.5 ? "0x0" : "0x5";
  return { call: { from, to: pick(random, STAND_IN_ACCOUNTS), gas, value }, overrides: {} };
};

/** Random calls, executed on the state of a stand-in chain. `random` selects the calls that are sent again and again. */
export const createCallReads = (chain: StandInChain, random: () => number): ReadKind<RandomCall> => {
  const calls = Array.from({ length: DIFFERENT_CALLS }, () => randomCall(random));
  return {
    ...{ batch: 8, latestShare: 0.8, maxDepth: 200, skipsAboveHead: true },
    draw: (next) => pick(next, calls),
    callAt: ({ call, overrides }, tag) => ({ method: "eth_call", params: [call, tag, overrides] }),
    expected: async ({ call, overrides }, hash) => {
      const block = chain.block(hash);
      if (block === undefined) {
        throw new Error(`no block has the hash ${hash}`);
      }
      // A sender without funds is an error.
      const result = await chain.execution.call(block, call, overrides).catch(() => undefined);
      return result?.status === "success" ? formatReturnData(result) : FAILED;
    },
  };
};
