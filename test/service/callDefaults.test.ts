import assert from "node:assert/strict";
import { mock, type TestContext, test } from "node:test";
import { type Address, type Hex, numberToHex } from "viem";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { type AnsweredCallsOptions, startAnsweredCalls } from "../support/servers/answeredCalls.ts";

// No answer is compared at random.
mock.method(Math, "random", () => 0.5);

/** What a node gives to a call that leaves it out. `gas` is the most, too. */
interface Defaults {
  readonly gas: number;
  readonly from?: Address;
  readonly gasPrice?: Hex;
}

/** An account of anvil that has a balance, and sends nothing here. */
const SENDER: Address = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
/** With input, writes its second word to the slot of its first word. Without, runs what comes after it. */
const WRITE = "3615600c576020355f3555005b";
const RETURN_TOP = "5f5260205ff3";
const codeOf = (view: string): Hex => `0x${WRITE}${view}${RETURN_TOP}`;

/** They compare what a node chooses with their first slot, or return that slot, or the one that the sender names. */
const CODES = {
  plain: codeOf("5f54"),
  gas: codeOf("5f545a11"),
  senderSlot: codeOf("3354"),
  sender: codeOf("5f543314"),
  origin: codeOf("5f543214"),
  price: codeOf("5f543a11"),
  baseFee: codeOf("5f544811"),
  number: codeOf("5f544311"),
} as const satisfies Record<string, Hex>;
type Name = keyof typeof CODES;
const NAMES = Object.keys(CODES) as Name[];
const addressOf = (name: Name): Address => `0x${(0xc0de_0000 + NAMES.indexOf(name)).toString(16).padStart(40, "0")}`;
/** Values of the slots: amounts of gas between those of the nodes, a sender, and other ones. */
const VALUES = [1_000_000n, 8_000_000n, 20_000_000n, 40_000_000n, BigInt(SENDER), 0n];
/** More than all that is compared, so that the first answers are those of any node. */
const FIRST_VALUE = 2n ** 64n;

const word = (value: bigint): string => value.toString(16).padStart(64, "0");

/** Changes the answers of anvil to those of a node with other defaults. */
const changeOf =
  ({ gas, ...others }: Defaults): NonNullable<AnsweredCallsOptions["change"]> =>
  async (method, params, result, truth) => {
    if (method !== "eth_call") {
      return result;
    }
    const call = Object(params[0]);
    const capped = Math.min(gas, Number(call.gas ?? gas));
    return truth(method, [{ ...others, ...call, gas: numberToHex(capped) }, ...params.slice(1)]);
  };

/** The slot that a contract reads on a node with this sender. */
const slotOf = (name: Name): bigint => (name === "senderSlot" ? BigInt(SENDER) : 0n);

const start = async (t: TestContext, defaults: Defaults) => {
  const rig = await startAnsweredCalls(t, {
    args: ["--gas-limit", "100000000"],
    codes: Object.fromEntries(NAMES.map((name) => [addressOf(name), CODES[name]])),
    change: changeOf(defaults),
  });
  const wrong: string[] = [];
  const hits = new Set<string>();
  /** Asks for all contracts at a new block, and compares the answers with those of the node. */
  const compare = async (): Promise<void> => {
    await rig.mine();
    for (const name of NAMES) {
      const call = { to: addressOf(name) };
      const { result, isHit } = await rig.ask("eth_call", [call]);
      const { body } = await rpc(rig.front.url, "eth_call", [call, "latest"]);
      if (result !== body.result) {
        wrong.push(`${name}: ${result}, the node has ${body.result}`);
      }
      if (isHit) {
        hits.add(name);
      }
    }
  };
  const write = (name: Name, slot: bigint, value: bigint): Promise<void> =>
    rig.send(addressOf(name), `0x${word(slot)}${word(value)}`);
  return { ...rig, wrong, hits, compare, write };
};

for (const [name, defaults, hasZeroSender] of [
  ["50,000,000 gas", { gas: 50_000_000 }, true],
  ["25,000,000 gas", { gas: 25_000_000 }, true],
  ["10,000,000 gas", { gas: 10_000_000 }, true],
  ["another sender", { gas: 50_000_000, from: SENDER }, false],
  ["a price", { gas: 50_000_000, from: SENDER, gasPrice: "0xb2d05e00" }, false],
] as const satisfies readonly (readonly [string, Defaults, boolean])[]) {
  test(`answers to calls are those of a node that gives them ${name}`, async (t) => {
    const { compare, write, wrong, hits, events, service } = await start(t, defaults);
    for (const contract of NAMES) {
      await write(contract, slotOf(contract), contract === "senderSlot" ? 0n : FIRST_VALUE);
    }
    await until(async () => {
      await compare();
      return (await metric(service.opsUrl, "forebay_state_answers_total")) >= NAMES.length;
    }, "each call is learned or refused");
    for (const value of VALUES) {
      for (const contract of NAMES) {
        await write(contract, slotOf(contract), value);
      }
      await compare();
      await compare();
    }
    assert.deepEqual(wrong, []);
    assert.equal(hits.has("plain"), hasZeroSender);
    assert.equal((await events("defaults")) > 0, !hasZeroSender);
  });
}
