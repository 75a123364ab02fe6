import assert from "node:assert/strict";
import { test } from "node:test";
import { chainForks } from "../../src/ethereum/chainForks.ts";
import { genesisForks } from "../../src/ethereum/ethereumForks.ts";
import { ETHEREUM_FORK_TIMES, OP_FORK_TIMES } from "../../src/ethereum/forkTimes.ts";
import { nativeContracts } from "../../src/ethereum/opForks.ts";
import {
  type ChainForks,
  ETHEREUM_FORKS,
  OP_FORKS,
  type Rules,
  rulesAt,
  UnknownRules,
} from "../../src/ethereum/rules.ts";

const NEVER = 2n ** 40n;

const forksOf = (chainId: number): ChainForks => {
  const forks = chainForks(BigInt(chainId));
  assert.ok(forks, `chain ${chainId} is known`);
  return forks;
};

/** The rules on both sides of a fork's time. */
const around = (forks: ChainForks, time: number): readonly [Rules, Rules] => [
  rulesAt(forks, NEVER, BigInt(time) - 1n),
  rulesAt(forks, NEVER, BigInt(time)),
];

for (const { chainId, name, source, times, ownRules } of OP_FORK_TIMES) {
  test(`${name} (${chainId}): every fork begins at its time`, () => {
    assert.notEqual(source, "");
    const forks = forksOf(chainId);
    if (ownRules) {
      assert.throws(() => rulesAt(forks, 1n, 1n), UnknownRules);
      return;
    }
    let lastTime = 0;
    for (const fork of OP_FORKS) {
      const time = times[fork];
      if (time === undefined) {
        continue;
      }
      assert.ok(time >= lastTime, `${fork} is not before the fork before it`);
      lastTime = time;
      const [before, after] = around(forks, time);
      const order = (rules: Rules) => OP_FORKS.indexOf(rules.op ?? "bedrock");
      assert.ok(order(after) >= OP_FORKS.indexOf(fork), `${fork} is active`);
      if (time > 0) {
        assert.ok(order(before) < OP_FORKS.indexOf(fork), `${fork} is not active before`);
      }
    }
  });
}

for (const { chainId, name, source, blocks, times } of ETHEREUM_FORK_TIMES) {
  test(`${name} (${chainId}): every fork begins at its block or time`, () => {
    assert.notEqual(source, "");
    const forks = forksOf(chainId);
    const order = (rules: Rules) => ETHEREUM_FORKS.indexOf(rules.fork);
    for (const [at, fork] of ETHEREUM_FORKS.entries()) {
      const block = blocks[fork];
      if (block !== undefined && block > 0) {
        assert.ok(order(rulesAt(forks, BigInt(block) - 1n, 0n)) < at, fork);
        assert.ok(order(rulesAt(forks, BigInt(block), 0n)) >= at, fork);
      }
      const time = times[fork];
      if (time === undefined || time === 0) {
        continue;
      }
      const [before, after] = around(forks, time);
      assert.ok(order(before) < at && order(after) >= at, fork);
    }
  });
}

test("chains with Karst since 2026", () => {
  const mainnets = [10, 130, 57_073, 1868, 7_777_777, 34_443, 1135, 1750, 183];
  const testnets = [11_155_420, 1301, 763_373, 1946, 999_999_999, 919, 4202, 1740];
  for (const [chains, time] of [
    [mainnets, 1_783_526_401],
    [testnets, 1_781_712_001],
    [[480], 1_789_992_000],
    [[4801], 1_788_868_800],
  ] as const) {
    for (const chain of chains) {
      const [before, after] = around(forksOf(chain), time);
      assert.deepEqual([before.op, before.fork, after.op, after.fork], ["jovian", "prague", "karst", "osaka"]);
    }
  }
});

test("Base has Azul, which is not Karst", () => {
  for (const [chain, time] of [
    [8453, 1_779_991_200],
    [84_532, 1_776_708_000],
  ] as const) {
    const [before, after] = around(forksOf(chain), time);
    assert.deepEqual([before.op, after.op, after.fork], ["jovian", "azul", "osaka"]);
    assert.equal(rulesAt(forksOf(chain), 1n, NEVER).op, "azul");
  }
});

test("Sepolia's rules are not known since Amsterdam", () => {
  const sepolia = forksOf(11_155_111);
  assert.equal(rulesAt(sepolia, NEVER, 1_791_294_815n).fork, "bpo2");
  assert.throws(() => rulesAt(sepolia, NEVER, 1_791_294_816n), UnknownRules);
});

test("a B20 token is native on Base since Beryl, and no other address with its first byte is", () => {
  const isNative = (address: string, timestamp = NEVER) =>
    nativeContracts(8453n, timestamp).some((native) => address.startsWith(native));
  const rest = "12".repeat(9);
  for (const variant of ["00", "01"]) {
    assert.ok(isNative(`0xb2${"00".repeat(9)}${variant}${rest}`));
  }
  assert.ok(isNative("0x8453000000000000000000000000000000000001"));
  assert.equal(isNative(`0xb2${"00".repeat(9)}02${rest}`), false);
  assert.equal(isNative(`0xb200${"00".repeat(7)}0100${rest}`), false);
  assert.equal(isNative(`0xb201${"34".repeat(18)}`), false);
  assert.equal(isNative(`0xb2${"00".repeat(9)}00${rest}`, 1_782_345_599n), false);
  assert.deepEqual(nativeContracts(130n, NEVER), []);
});

test("from an unknown fork of a genesis file on, nothing is executed", () => {
  const config = { chainId: 7, londonBlock: 0, pragueTime: 0, osakaTime: 10, bpo9Time: 30, amsterdamTime: 20 };
  const forks = genesisForks(config);
  assert.deepEqual([rulesAt(forks, 1n, 9n).fork, rulesAt(forks, 1n, 19n).fork], ["prague", "osaka"]);
  assert.throws(() => rulesAt(forks, 1n, 20n), UnknownRules);
  const op = genesisForks({ chainId: 7, optimism: {}, regolithTime: 0, jovianTime: 10, pragueTime: 10 });
  assert.deepEqual([rulesAt(op, 1n, 9n).op, rulesAt(op, 1n, 10n).op], ["regolith", "jovian"]);
});
