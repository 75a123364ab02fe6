import assert from "node:assert/strict";
import { test } from "node:test";
import { ethereumForks, opForks } from "../../src/ethereum/chainForks.ts";
import { ETHEREUM_FORK_TIMES } from "../../src/ethereum/forkTimes.ts";
import type { Hash } from "../../src/ethereum/hex.ts";
import { findRuleDifference } from "../../src/ethereum/nodeRules.ts";
import { type ChainForks, rulesAt } from "../../src/ethereum/rules.ts";

const MAINNET_GENESIS: Hash = "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3";
const GENESIS = new Map<bigint, Hash>([
  [1n, MAINNET_GENESIS],
  [11_155_111n, "0x25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9"],
  [560_048n, "0xbbe312868b376a3001692a646dd2d7d1e4406380dfd86b98aa8a34d1557c971b"],
  [17_000n, "0xb5f7f912443c940f21fd611f12828d75b534364ed9e95ca4e307729a4661bde4"],
]);
/** EIP-2124 hashes that nodes of these chains announce for bpo2. */
const FORK_IDS = new Map([
  [1n, "0x07c9462e"],
  [11_155_111n, "0x268956b6"],
  [560_048n, "0x23aa1351"],
  [17_000n, "0x9bc6cb31"],
]);

const hashOf = (chainId: bigint): Hash => GENESIS.get(chainId) ?? MAINNET_GENESIS;
const known = (forks: ChainForks | undefined): ChainForks => {
  assert.ok(forks);
  return forks;
};
const address = (number: number): string => `0x${number.toString(16).padStart(40, "0")}`;
const precompiles = (...numbers: readonly number[]) =>
  Object.fromEntries(numbers.map((number) => [`P${number}`, address(number)]));
const OSAKA_PRECOMPILES = precompiles(...Array.from({ length: 17 }, (_, at) => at + 1), 0x100);

const BPO2_MAINNET = {
  activationTime: 1_767_747_671,
  blobSchedule: { target: 14, max: 21, baseFeeUpdateFraction: 11_684_671 },
  chainId: "0x1",
  forkId: "0x07c9462e",
  precompiles: OSAKA_PRECOMPILES,
  systemContracts: {
    BEACON_ROOTS_ADDRESS: "0x000f3df6d732807ef1319fb7b8bb8522d0beac02",
    DEPOSIT_CONTRACT_ADDRESS: "0x00000000219ab540356cbb839cbe05303d7705fa",
  },
};
/** Fork id and system contracts as in go-ethereum v1.17.10 (core/forkid/forkid_test.go, params/protocol_params.go). */
const AMSTERDAM_SEPOLIA = {
  ...BPO2_MAINNET,
  activationTime: 1_791_294_816,
  forkId: "0x6c1d9423",
  systemContracts: {
    BUILDER_DEPOSIT_CONTRACT_ADDRESS: "0x0000bff46984e3725691fa540a8c7589300d8282",
    BUILDER_EXIT_CONTRACT_ADDRESS: "0x000064d678505ad48f8ccb093bc65613800e8282",
  },
};
const compare = (change: object) =>
  findRuleDifference(
    { current: { ...BPO2_MAINNET, ...change }, next: null, last: null },
    known(ethereumForks(1n)),
    MAINNET_GENESIS,
  );

for (const { chainId, name, times } of ETHEREUM_FORK_TIMES) {
  test(`the newest known rules of ${name}, as its nodes name them, are ours`, () => {
    const forks = known(ethereumForks(BigInt(chainId)));
    const current = {
      ...BPO2_MAINNET,
      activationTime: times.bpo2,
      forkId: FORK_IDS.get(BigInt(chainId)),
    };
    assert.equal(findRuleDifference({ current }, forks, hashOf(BigInt(chainId))), undefined);
  });
}

test("a node with other rules is found out by each of its values", () => {
  const from = 1_767_747_671n;
  assert.equal(compare({}), undefined);
  assert.deepEqual(compare({ forkId: "0x12345678" }), { from, what: "fork id 0x12345678" });
  assert.deepEqual(compare({ activationTime: 1_800_000_000 }), {
    from: 1_800_000_000n,
    what: "activation time 1800000000",
  });
  const blobSchedule = { target: 21, max: 32, baseFeeUpdateFraction: 17_527_006 };
  assert.deepEqual(compare({ blobSchedule }), { from, what: "blob schedule 21/32/17527006" });
  assert.deepEqual(compare({ precompiles: { ...OSAKA_PRECOMPILES, NEW: address(0x12) } }), {
    from,
    what: `precompile NEW at ${address(0x12)}`,
  });
  assert.deepEqual(compare({ systemContracts: { NEW_CONTRACT: address(7) } }), {
    from,
    what: `system contract NEW_CONTRACT at ${address(7)}`,
  });
  assert.ok(compare({ systemContracts: { BEACON_ROOTS_ADDRESS: address(7) } }));
});

test("the earliest of a node's newer forks counts", () => {
  const later = (activationTime: number) => ({ ...BPO2_MAINNET, activationTime });
  const config = { current: BPO2_MAINNET, next: later(1_800_000_000), last: later(1_900_000_000) };
  assert.equal(findRuleDifference(config, known(ethereumForks(1n)), MAINNET_GENESIS)?.from, 1_800_000_000n);
});

test("a malformed response to eth_config shows no difference", () => {
  for (const config of [null, "x", {}, { current: null }, { current: { activationTime: "0x1" } }]) {
    assert.equal(findRuleDifference(config, known(ethereumForks(1n)), MAINNET_GENESIS), undefined);
  }
});

test("the rules of Amsterdam on Sepolia, as a node names them, are ours", () => {
  const sepolia = 11_155_111n;
  const compareSepolia = (change: object) =>
    findRuleDifference(
      { current: { ...AMSTERDAM_SEPOLIA, ...change } },
      known(ethereumForks(sepolia)),
      hashOf(sepolia),
    );
  assert.equal(compareSepolia({}), undefined);
  assert.equal(compareSepolia({ forkId: "0x268956b6" })?.what, "fork id 0x268956b6");
  const { systemContracts } = AMSTERDAM_SEPOLIA;
  const changed = { ...systemContracts, BUILDER_EXIT_CONTRACT_ADDRESS: address(7) };
  assert.equal(
    compareSepolia({ systemContracts: changed })?.what,
    `system contract BUILDER_EXIT_CONTRACT_ADDRESS at ${address(7)}`,
  );
  assert.equal(
    compareSepolia({ activationTime: 1_761_607_008, systemContracts, forkId: "0x268956b6" })?.what,
    "system contract BUILDER_DEPOSIT_CONTRACT_ADDRESS at 0x0000bff46984e3725691fa540a8c7589300d8282",
  );
});

test("forks of the OP stack are compared by their times and precompiles", () => {
  const unichain = known(opForks(130n));
  const compareAt = (activationTime: number, change: object = {}) =>
    findRuleDifference(
      { current: { activationTime, precompiles: OSAKA_PRECOMPILES, ...change } },
      unichain,
      MAINNET_GENESIS,
    );
  assert.equal(rulesAt(unichain, 1n, 1_783_526_401n).op, "karst");
  assert.equal(compareAt(1_783_526_401), undefined);
  assert.equal(compareAt(1_790_000_000)?.from, 1_790_000_000n);
  assert.ok(compareAt(1_783_526_401, { precompiles: precompiles(0x12) }));
});

test("a node that names Lagoon's time in eth_config has no other rules, and another time is unknown", () => {
  for (const [chainId, lagoon] of [
    [11_155_420n, 1_796_918_401],
    [10n, 1_799_683_201],
  ] as const) {
    const forks = known(opForks(chainId));
    const compare = (activationTime: number) =>
      findRuleDifference(
        { current: { activationTime: 0 }, next: { activationTime, precompiles: OSAKA_PRECOMPILES } },
        forks,
        MAINNET_GENESIS,
      );
    assert.equal(compare(lagoon), undefined);
    assert.equal(compare(lagoon + 1)?.from, BigInt(lagoon + 1));
  }
});
