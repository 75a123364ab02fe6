import assert from "node:assert/strict";
import { test } from "node:test";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { hashOf } from "../support/builders/heads.ts";
import { A, a, requestOf } from "./requestOf.ts";

test("names that every object inherits are ordinary keys of a parameter", async () => {
  const { text } = await requestOf("eth_call", [
    JSON.parse('{"toString":1,"constructor":{"b":1,"a":2},"__proto__":{"x":1}}'),
  ]);
  assert.deepEqual(
    JSON.parse(text),
    JSON.parse('[{"toString":1,"constructor":{"a":2,"b":1},"__proto__":{"x":1}},"0x64"]'),
  );
});

test("an EIP-1898 object may have null for an absent field", async () => {
  for (const block of [
    { blockHash: null, blockNumber: "0x64" },
    { blockHash: hashOf(100n), blockNumber: null, requireCanonical: null },
  ]) {
    const { byHash } = await requestOf("eth_getBalance", [A, block]);
    assert.deepEqual(byHash?.params, [a, { blockHash: hashOf(100n) }]);
  }
});

/** Every list of a transaction and every map that a client can make large, with the most parts that are accepted. */
const LIMITS: readonly (readonly [
  max: number,
  parts: string,
  method: string,
  paramsOf: (parts: number) => unknown[],
])[] = [
  [10_000, "values", "eth_getProof", (count) => [a, Array(count).fill("0x1"), "latest"]],
  [1_024, "slots", "eth_getStorageValues", (count) => [{ [a]: Array(count - 1).fill("0x1"), [B]: ["0x1"] }, "latest"]],
  [10_000, "addresses and slots", "eth_call", (count) => [{ accessList: Array(count).fill({ address: a }) }]],
  [
    10_000,
    "addresses and slots",
    "eth_fillTransaction",
    (count) => [{ accessList: [{ address: a, storageKeys: Array(count - 1).fill(hashOf(1n)) }] }],
  ],
  [1_000, "values", "eth_estimateGas", (count) => [{ authorizationList: Array(count).fill({ nonce: "0x1" }) }]],
  [1_000, "values", "eth_createAccessList", (count) => [{ blobVersionedHashes: Array(count).fill(hashOf(1n)) }]],
  [
    5_000,
    "slots",
    "eth_call",
    (count) => [{}, "latest", { [a]: { state: slots(count - 1) }, [B]: { stateDiff: slots(1) } }],
  ],
];

const B = `0x${"bb".repeat(20)}`;

const slots = (count: number): object =>
  Object.fromEntries(Array.from({ length: count }, (_, slot) => [`0x${slot.toString(16)}`, hashOf(1n)]));

test("parameters with more parts than an honest request needs are refused before they are parsed", async () => {
  for (const [max, parts, method, paramsOf] of LIMITS) {
    await requestOf(method, paramsOf(max));
    const tooMany = { code: -32602, message: new RegExp(`^invalid \\S+: more than ${max} ${parts}$`) };
    await assert.rejects(requestOf(method, paramsOf(max + 1)), tooMany, method);
  }
});

test("a missing block, latest, its number with leading zeros, and its hash become one request", async () => {
  const forms = [
    [A],
    [a, "latest"],
    [A, "0x0064"],
    [A, { blockNumber: "0x64" }],
    [a, { blockHash: hashOf(100n) }],
    [A, null],
  ];
  const requests = await Promise.all(forms.map((params) => requestOf("eth_getTransactionCount", params)));
  const keys = new Set(
    requests.map(({ canonicalParams, retention, block }) =>
      JSON.stringify([canonicalParams, retention, String(block?.number), block?.hash]),
    ),
  );
  assert.equal(keys.size, 1);
});

test("a proof key without a prefix is sent as hex: reth reads it as decimal digits", async () => {
  const { params, byHash, text } = await requestOf("eth_getProof", [a, ["10", "0x2"], "latest"]);
  assert.deepEqual(
    [params[1], byHash?.params[1]],
    [
      ["0x10", "0x2"],
      ["0x10", "0x2"],
    ],
  );
  assert.match(text, /\["0x10","0x2"\]/);
});

test("slots, quantities, call objects and overrides have one canonical form", async () => {
  assert.equal(
    (await requestOf("eth_getStorageAt", [A, "0x01", "latest"])).canonicalParams,
    (await requestOf("eth_getStorageAt", [a, "0x1"])).canonicalParams,
  );
  const one = await requestOf("eth_call", [
    { to: A, data: "0xAB", value: "0x00" },
    "latest",
    { [A]: { stateDiff: { "0x1": "0x2" } } },
  ]);
  const other = await requestOf("eth_call", [
    { value: "0x0", input: "0xab", to: a, from: null },
    "0x64",
    { [a]: { stateDiff: { [`0x${"1".padStart(64, "0")}`]: `0x${"2".padStart(64, "0")}` } } },
  ]);
  assert.equal(one.canonicalParams, other.canonicalParams);
});

/** Params with equal responses in geth. Each group becomes one request, in the form that every node accepts. */
const equivalent: readonly (readonly [string, string, readonly (readonly unknown[])[]])[] = [
  [
    "eth_call",
    `[{"input":"0x22","to":"${a}","value":"0x0"},"0x64"]`,
    [
      [{ to: A, input: "0x22", data: "0x11", value: "0x0" }],
      [{ to: A, input: "0x22", data: "", value: "" }, "unsafe"],
      [{ to: A.replace("0x", "0X"), input: "0X22", data: null, value: "0X0" }, { blockNumber: "unsafe" }],
      [{ to: A, data: "0X22", value: "0x00" }, "0X64", null, null],
    ],
  ],
  ["eth_call", `[{"input":"0x"},"0x64"]`, [[{ data: "" }], [{ input: "", data: "0x12" }, "latest"]]],
  [
    "eth_feeHistory",
    '["0x4","0x64",[]]',
    [
      [4, "latest", null],
      ["4", "unsafe"],
      ["0x4", "0X64", []],
      ["0X04", "latest", []],
      ["004", "latest", []],
    ],
  ],
  [
    "eth_getProof",
    `["${a}",[],"0x64"]`,
    [
      [A, null, "latest"],
      [a, [], "unsafe"],
    ],
  ],
  [
    "eth_getBlockByNumber",
    '["0x64",false]',
    [
      ["latest", null],
      ["unsafe", false],
      ["0X64", false],
    ],
  ],
  [
    "eth_getBlockByHash",
    `["${hashOf(7n)}",false]`,
    [
      [hashOf(7n), null],
      [hashOf(7n).replace("0x", "0X"), false],
    ],
  ],
  [
    "eth_getTransactionByBlockHashAndIndex",
    `["${hashOf(7n)}","0x0"]`,
    [
      [hashOf(7n), ""],
      [hashOf(7n), "0X0"],
    ],
  ],
  [
    "eth_getStorageAt",
    `["${a}","0x${"1".padStart(64, "0")}","0x64"]`,
    [
      [A, "0X1"],
      [A, "0x01", "unsafe"],
    ],
  ],
];

for (const [name, text, forms] of equivalent) {
  for (const params of forms) {
    test(`${name} ${JSON.stringify(params).slice(0, 120)} is equivalent, as in geth`, async () => {
      const request = await requestOf(name, params);
      assert.equal(request.text, text);
      assert.equal(request.canonicalParams, (await requestOf(name, forms[0] ?? [])).canonicalParams);
    });
  }
}

test("transactions and block parameters are sent to nodes in canonical form", async () => {
  assert.equal((await requestOf("eth_sendRawTransaction", ["0X02AB"])).text, '["0x02ab"]');
  const payload = { blockStateCalls: [{}] };
  assert.deepEqual((await requestOf("eth_simulateV1", [payload, "unsafe"])).params, [payload, "0x64"]);
  assert.deepEqual((await requestOf("eth_simulateV1", [payload, "pending"])).params, [payload, "pending"]);
  assert.deepEqual((await requestOf("eth_simulateV1", [payload, "0X10"])).params, [payload, "0x10"]);
  assert.deepEqual((await requestOf("eth_simulateV1", [payload])).params, [payload, "0x64"]);
});

const invalid: readonly (readonly [string, readonly unknown[], RegExp])[] = [
  ["eth_getBalance", [], /missing value for required argument 0: address/],
  ["eth_getBalance", ["0x12"], /invalid address/],
  ["eth_getBalance", [A, "0xzz"], /invalid block/],
  ["eth_getBalance", [A, "new"], /invalid block/],
  ["eth_getBalance", [A, 7], /invalid block/],
  ["eth_getBalance", [A, "latest", 1], /too many arguments, want at most 2/],
  ["eth_getBalance", [A, { blockHash: "0x12" }], /invalid block: blockHash/],
  ["eth_getBlockByNumber", ["0x1"], /required argument 1: fullTransactions/],
  ["eth_getBlockByNumber", ["0x1", "yes"], /invalid fullTransactions/],
  ["eth_getBlockByNumber", ["1", true], /invalid block: hex string without 0x prefix/],
  ["eth_getBlockByNumber", ["0xffffffffffffffffff", true], /larger than int64/],
  ["eth_getStorageAt", [A, "0xasdf"], /invalid hex in storage key: "0xasdf"/],
  ["eth_getStorageAt", [A, `0x${"0".repeat(65)}`], /storage key too long/],
  ["eth_getStorageAt", [A, ""], /invalid position: want a storage slot/],
  ["eth_getStorageAt", [A, "0x"], /invalid position: want a storage slot/],
  ["eth_getLogs", [null], /filter: expected an object/],
  ["eth_call", [{}, "latest", { [A]: {}, [a]: {} }], /the same key twice/],
  ["eth_call", [{}, "latest", { [A]: { state: { "0x1": "0x2", "0x01": "0x2" } } }], /the same key twice/],
  ["eth_getTransactionByHash", ["0x1"], /invalid hash/],
  ["eth_call", ["0x"], /invalid transaction/],
  ["eth_call", [{ to: "0x1" }], /invalid transaction\.to/],
  ["eth_call", [{ data: "0x1" }], /invalid transaction\.data/],
  ["eth_call", [{ value: "0x" }], /invalid transaction\.value/],
  ["eth_call", [{ to: "" }], /invalid transaction\.to/],
  ["eth_call", [null], /invalid transaction/],
  ["eth_getBalance", [A, ""], /invalid block/],
  ["eth_getBalance", [A, "Unsafe"], /invalid block/],
  ["eth_feeHistory", ["4.5", "latest", []], /invalid blockCount/],
  ["eth_feeHistory", [-1, "latest", []], /invalid blockCount/],
  ["eth_call", [{}, "latest", { "0x1": {} }], /invalid stateOverrides key/],
  ["eth_feeHistory", ["0x1", "latest", "5"], /invalid rewardPercentiles/],
  ["eth_feeHistory", ["0x1", "latest", JSON.parse("[1e400]")], /invalid rewardPercentiles\[0\]: number out of range/],
  ["debug_traceCall", [{}, "latest", { timeouts: [2 ** 53] }], /invalid options.timeouts\[0\]: number out of range/],
  ["eth_getProof", [A, ["0xq"]], /invalid hex in storage key/],
];

for (const [name, params, message] of invalid) {
  test(`${name} ${JSON.stringify(params).slice(0, 60)} is rejected with -32602`, async () => {
    await assert.rejects(requestOf(name, params), (error) => {
      assert.ok(error instanceof RpcError);
      assert.equal(error.code, -32602);
      assert.match(error.message, message);
      return true;
    });
  });
}
