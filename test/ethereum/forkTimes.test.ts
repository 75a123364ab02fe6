import assert from "node:assert/strict";
import { test } from "node:test";
import { chainForks, fixedForks, genesisForks, nativeContracts } from "../../src/ethereum/chainForks.ts";
import { ETHEREUM_FORK_TIMES, OP_FORK_TIMES } from "../../src/ethereum/forkTimes.ts";
import {
  type ChainForks,
  ETHEREUM_FORKS,
  type EthereumFork,
  hasLagoon,
  OP_FORKS,
  type Rules,
  rulesAt,
  UnknownRules,
} from "../../src/ethereum/rules.ts";
import { fastRulesOf } from "../../src/evm/fast/fastRules.ts";

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

test("chains with a time for Lagoon, which changes no rule inside the EVM", () => {
  for (const [chains, time] of [
    [[11_155_420, 763_373, 1946, 1301], 1_796_918_401],
    [[10, 57_073, 1868, 130], 1_799_683_201],
  ] as const) {
    for (const chain of chains) {
      const forks = forksOf(chain);
      const [before, after] = around(forks, time);
      assert.deepEqual([before.op, after.op, after.fork, hasLagoon(forks)], ["karst", "lagoon", "osaka", true]);
      assert.deepEqual(fastRulesOf(after), fastRulesOf(before));
    }
  }
  const without = OP_FORK_TIMES.filter(({ times }) => times.lagoon === undefined);
  assert.ok(without.every(({ chainId }) => !hasLagoon(forksOf(chainId))));
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

test("Sepolia has Amsterdam, with the blob schedule of the fork before", () => {
  const sepolia = forksOf(11_155_111);
  const [before, after] = around(sepolia, 1_791_294_816);
  assert.deepEqual([before.fork, after.fork], ["bpo2", "amsterdam"]);
  assert.deepEqual(after.blobs, before.blobs);
  assert.deepEqual(after.blobs, { target: 14n, max: 21n, updateFraction: 11_684_671n });
});

test("a development chain has the newest blob schedule of its fork", () => {
  const targetOf = (fork: EthereumFork) => rulesAt(fixedForks(7n, fork), 1n, 1n).blobs?.target;
  assert.deepEqual((["shanghai", "cancun", "osaka", "bpo1", "amsterdam"] as const).map(targetOf), [
    undefined,
    3n,
    6n,
    10n,
    14n,
  ]);
});

test("a fork of a genesis file keeps the schedule of the fork before it", () => {
  const blobSchedule = { prague: { target: 5, max: 7, baseFeeUpdateFraction: 11 } };
  const forks = genesisForks({
    chainId: 7,
    londonBlock: 0,
    pragueTime: 0,
    osakaTime: 10,
    amsterdamTime: 20,
    blobSchedule,
  });
  assert.deepEqual(
    [9n, 10n, 20n].map((time) => rulesAt(forks, 1n, time).blobs?.target),
    [5n, 5n, 5n],
  );
  assert.equal(rulesAt(forks, 1n, 20n).fork, "amsterdam");
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
  const config = { chainId: 7, londonBlock: 0, pragueTime: 0, osakaTime: 10, bpo9Time: 20 };
  const forks = genesisForks(config);
  assert.deepEqual([rulesAt(forks, 1n, 9n).fork, rulesAt(forks, 1n, 19n).fork], ["prague", "osaka"]);
  assert.throws(() => rulesAt(forks, 1n, 20n), UnknownRules);
  const op = genesisForks({ chainId: 7, optimism: {}, regolithTime: 0, jovianTime: 10, pragueTime: 10 });
  assert.deepEqual([rulesAt(op, 1n, 9n).op, rulesAt(op, 1n, 10n).op], ["regolith", "jovian"]);
});
