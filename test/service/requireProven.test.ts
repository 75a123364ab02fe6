import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { parse } from "yaml";
import type { z } from "zod";
import type { configSchema } from "../../src/config/schema.ts";
import { hashHeader } from "../../src/ethereum/blockHeader.ts";
import { orderedTrieRoot } from "../../src/ethereum/orderedTrie.ts";
import { parseHeader } from "../../src/verification/checkHeader.ts";
import { readRepositoryFile } from "../docs/repositoryFiles.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { connectSocket } from "../support/clients/socketClient.ts";
import { until } from "../support/clients/until.ts";
import { type Lie, type LyingNode, startLyingNode } from "../support/fakes/lyingNode.ts";
import { createSealedChain, type SealedChain } from "../support/servers/sealedChain.ts";
import { createService, type Service } from "../support/servers/service.ts";

type Config = z.input<typeof configSchema>;

const EMPTY_BLOCKS = 4;
const HEADING = "## Answers that no provider can forge";
/** Its SHA-256 is in the recipe. */
const KEY = { "x-api-key": "test" };
const REQUIRE = { "x-forebay-require": "proven" };
const ZERO = `0x${"0".repeat(40)}`;
const WORD = `0x${"f".repeat(64)}`;
const EMPTY_TRIE_ROOT = orderedTrieRoot([]);

let chain: SealedChain;
let nodes: readonly LyingNode[];
let service: Service;

const readRecipe = (): Config => {
  const text = readRepositoryFile("docs/recipes.md");
  const [, yaml = ""] = /```yaml\n(.*?)```/s.exec(text.slice(text.indexOf(HEADING))) ?? [];
  return parse(yaml) as Config;
};

/** Changes one member of an object, or the result itself if it is none. */
const changed = (result: unknown, name: string, value: unknown): unknown =>
  typeof result === "object" && result !== null ? { ...result, [name]: value } : value;

const PROOF = ["eth_getProof"];
const BLOCKS = ["eth_getBlockByHash", "eth_getBlockByNumber"];

/** Returns the JSON text of an empty block with its own hash. Before that, it has the hash and the number of the true block. */
const forgeBlock = ({ hash, number, ...rest }: Readonly<Record<string, unknown>>): string => {
  const forged = {
    ...{ ...rest, number, transactions: [], gasUsed: "0x0", extraData: "0xdead", logsBloom: `0x${"00".repeat(256)}` },
    ...{ transactionsRoot: EMPTY_TRIE_ROOT, receiptsRoot: EMPTY_TRIE_ROOT },
  };
  const own = JSON.stringify({ ...forged, hash: hashHeader(parseHeader(forged)) });
  return `{"hash":"${hash}","number":"${number}",${own.slice(1)}`;
};

/** Forges the blocks that are asked for by number. */
const forgeByNumber: NonNullable<Lie["http"]> = (http, calls) => {
  const all: readonly { readonly id: unknown; readonly result?: unknown }[] = [JSON.parse(http.text)].flat();
  const texts = all.map(({ id, result, ...rest }) => {
    const isByNumber = calls.some((call) => call.id === id && call.method === "eth_getBlockByNumber");
    return isByNumber && isObject(result) && typeof result.hash === "string"
      ? `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${forgeBlock(result)}}`
      : JSON.stringify({ ...rest, id, ...(result !== undefined && { result }) });
  });
  return { ...http, text: http.text.startsWith("[") ? `[${texts.join(",")}]` : (texts[0] ?? "") };
};

/** Lies about what an answer is proven by. */
const LIES: readonly Lie[] = [
  { name: "balance beside a proof", methods: PROOF, result: (result) => changed(result, "balance", "0xbad") },
  { name: "nonce beside a proof", methods: PROOF, result: (result) => changed(result, "nonce", "0xbad") },
  { name: "no nodes", methods: PROOF, result: (result) => changed(result, "accountProof", []) },
  {
    name: "stale proof",
    methods: PROOF,
    result: (_, { params }, ask) => ask("eth_getProof", [params?.[0], params?.[1], "0x1"]),
  },
  { name: "code", methods: ["eth_getCode"], result: () => "0x6001" },
  { name: "no receipts", methods: ["eth_getBlockReceipts"], result: () => [] },
  { name: "gas of a block", methods: BLOCKS, result: (result) => changed(result, "gasUsed", "0x1") },
  {
    name: "unknown field, and a state root",
    methods: BLOCKS,
    result: (result) => changed(changed(result, "newField", "0x1"), "stateRoot", WORD),
  },
  {
    name: "senders",
    methods: BLOCKS,
    result: (result) => {
      const { transactions } = Object(result);
      return isObject(transactions?.[0])
        ? changed(
            result,
            "transactions",
            transactions.map((each: unknown) => changed(each, "from", ZERO)),
          )
        : result;
    },
  },
  {
    name: "gas price of a receipt",
    methods: ["eth_getBlockReceipts", "eth_getTransactionReceipt"],
    result: (result) =>
      Array.isArray(result)
        ? result.map((each) => changed(each, "effectiveGasPrice", "0x1"))
        : changed(result, "effectiveGasPrice", "0x1"),
  },
  {
    name: "two hashes of a block",
    methods: BLOCKS,
    result: (result, { method }) => (method === "eth_getBlockByHash" ? null : result),
    http: forgeByNumber,
  },
  {
    name: "hashes of a block",
    methods: BLOCKS,
    result: (result) => changed(result, "transactions", [WORD]),
  },
];

/** Lies that are not even asked for. */
const IGNORED: readonly Lie[] = [
  { name: "values", methods: ["eth_getBalance", "eth_getTransactionCount", "eth_getStorageAt"], result: () => WORD },
  { name: "logs", methods: ["eth_getLogs"], result: () => [] },
  { name: "count", methods: ["eth_getBlockTransactionCountByNumber"], result: () => "0x7" },
];

before(async () => {
  chain = await createSealedChain(EMPTY_BLOCKS);
  nodes = await Promise.all([0, 1, 2].map(() => startLyingNode({ after: () => undefined }, chain.devnet.anvilUrl)));
  service = await startRecipe();
});
after(async () => {
  await service?.close();
  await Promise.all((nodes ?? []).map((node) => node.close()));
  await chain?.devnet.close();
});

const required = (method: string, ...params: readonly unknown[]) => requiredOf(service, method, ...params);

const requiredOf = async ({ url }: Service, method: string, ...params: readonly unknown[]) => {
  const { body, headers } = await rpc(url, method, params, KEY);
  const error = body.error as { readonly data?: Readonly<Record<string, unknown>>; readonly message: string };
  return { result: body.result, error, reason: error?.data?.reason, label: headers.get("x-forebay-proof") };
};

/** Starts the service of the recipe. The first node gets every read that it can answer. */
const startRecipe = async (changed: Partial<Config["chains"][number]> = {}): Promise<Service> => {
  const { chains, ...rest } = readRecipe();
  const [recipe] = chains;
  assert.ok(recipe !== undefined);
  const started = await createService(
    {
      ...recipe,
      chainId: chain.devnet.chainId,
      nodes: recipe.nodes.map((node, index) => ({
        ...node,
        url: nodes[index]?.url ?? "",
        provider: `operator${index}`,
        priority: index,
      })),
      pending: { mode: "node" },
      ...changed,
    },
    rest,
  );
  const oldest = chain.final[0]?.number;
  await until(
    async () => (await requiredOf(started, "eth_getUncleCountByBlockNumber", oldest)).error === undefined,
    "an agreed head, and the ring reaches down to the oldest block",
  );
  return started;
};

const truth = async (method: string, ...params: readonly unknown[]): Promise<unknown> =>
  (await rpc(chain.devnet.anvilUrl, method, params)).body.result;

/** Members that nodes of some software add. */
const ADDED: ReadonlySet<string> = new Set(["blockTimestamp", "blobGasPrice", "blobGasUsed"]);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;

/** Returns a value without the members of ADDED, at any depth. */
const common = (value: unknown): unknown => {
  if (Array.isArray(value)) {
    return value.map(common);
  }
  return isObject(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([name, member]) => (ADDED.has(name) ? [] : [[name, common(member)]])),
      )
    : value;
};

const callsAt = (): readonly (readonly [string, ...unknown[]])[] => {
  const { token, accounts, recent, final } = chain;
  const blocks = [...final.slice(-1), ...recent.slice(-1)];
  const [account] = accounts;
  return [
    ...blocks.flatMap(({ number, hash, transactions }): [string, ...unknown[]][] => [
      ["eth_getBalance", account, number],
      ["eth_getTransactionCount", account, { blockHash: hash }],
      ["eth_getStorageAt", token, "0x0", number],
      ["eth_getCode", token, number],
      ["eth_getCode", account, number],
      ["eth_getBlockByNumber", number, false],
      ["eth_getBlockByHash", hash, false],
      ["eth_getBlockTransactionCountByNumber", number],
      ["eth_getUncleCountByBlockNumber", number],
      ["eth_getUncleCountByBlockHash", hash],
      ["eth_getLogs", { blockHash: hash, address: token }],
      ["eth_getBlockByNumber", number, true],
      ["eth_getBlockReceipts", number],
      ["eth_getBlockReceipts", { blockHash: hash }],
      ["eth_getTransactionByBlockNumberAndIndex", number, "0x0"],
      ["eth_getTransactionByBlockHashAndIndex", hash, "0xff"],
      ["eth_getTransactionByHash", transactions[0]],
      ["eth_getTransactionReceipt", transactions.at(-1)],
    ]),
    ["eth_blockNumber"],
    ["eth_getBalance", account, "latest"],
    ["eth_getBlockByNumber", "latest", true],
    ["eth_getLogs", { fromBlock: blocks[0]?.number, toBlock: blocks.at(-1)?.number, address: token }],
    ["eth_getLogs", { fromBlock: blocks[0]?.number, toBlock: blocks.at(-1)?.number, address: `0x${"12".repeat(20)}` }],
  ];
};

const assertTrue = async (started: Service): Promise<void> => {
  for (const [method, ...params] of callsAt()) {
    const { result, error, label } = await requiredOf(started, method, ...params);
    const text = `${method} ${JSON.stringify(params)}`;
    assert.equal(error, undefined, text);
    assert.match(label ?? "", /^proven; block=\d+$/, text);
    const expected = common(await truth(method, ...params));
    assert.deepEqual(common(result), expected, text);
  }
};

for (const lie of LIES) {
  test(`the recipe: a provider lies (${lie.name}), and clients that require proven answers get the truth`, async () => {
    const [liar] = nodes;
    assert.ok(liar !== undefined);
    const started = await startRecipe();
    liar.lies = [lie, ...IGNORED];
    try {
      await assertTrue(started);
      assert.ok((liar.lied.get(lie.name) ?? 0) > 0, "the lie is told");
    } finally {
      liar.lies = [];
      await started.close();
    }
  });
}

test("the recipe: if all nodes lie, a client gets an error with the reason", async () => {
  const started = await startRecipe();
  const [account] = chain.accounts;
  for (const node of nodes) {
    node.lies = LIES;
  }
  try {
    const { error, reason } = await requiredOf(started, "eth_getBalance", account, "latest");
    assert.equal(error?.message, "not proven: no proof of this answer was found");
    assert.equal(reason, "noProof");
  } finally {
    for (const node of nodes) {
      node.lies = [];
    }
    await started.close();
  }
});

/** Errors that a node can send in place of an answer. Each has its mark in its text and in its data. */
const FORGED: readonly (readonly [code: number, message: string, isAnswer: boolean])[] = [
  [3, "execution reverted: dead", true],
  [-32_000, "execution reverted: dead", true],
  [-32_000, "insufficient funds for dead", true],
  [-32_015, "out of gas: dead", true],
  [-32_602, "invalid argument dead", true],
  [-32_701, "dead", true],
  [-32_603, "dead", false],
  [-32_005, "dead", false],
];

for (const [code, message, isAnswer] of FORGED) {
  test(`the recipe: nothing of an error that nodes forge reaches a client (${code} ${message})`, async (t) => {
    const started = await startRecipe();
    t.after(() => started.close());
    const [account] = chain.accounts;
    const error = { code, message, data: "0xdead" };
    const forged: Lie = {
      name: "error",
      methods: ["eth_call", "eth_getProof"],
      response: ({ id }) => ({ jsonrpc: "2.0", id, error }),
    };
    for (const node of nodes) {
      node.lies = [forged];
    }
    try {
      for (const [method, param] of [
        ["eth_call", { from: account, to: chain.token, data: "0x18160ddd" }],
        ["eth_getBalance", account],
      ] as const) {
        const { status, body } = await rpc(started.url, method, [param, "latest"], KEY);
        assert.doesNotMatch(JSON.stringify(body), /dead/, method);
        const { data } = body.error as { readonly data?: { readonly reason?: string } };
        assert.equal(data?.reason, isAnswer ? "noProof" : undefined, method);
        assert.equal(status === 200, isAnswer, method);
      }
    } finally {
      for (const node of nodes) {
        node.lies = [];
      }
    }
  });
}

test("if no node can answer, a call fails as for any client, and not for the lack of a proof", async (t) => {
  const started = await startRecipe();
  t.after(() => started.close());
  const busy: Lie = { name: "busy", methods: PROOF, http: () => ({ status: 503, text: "busy" }) };
  for (const node of nodes) {
    node.lies = [busy];
  }
  try {
    const { status, headers, body } = await rpc(started.url, "eth_getBalance", [chain.accounts[0], "latest"], KEY);
    assert.doesNotMatch(body.error?.message ?? "", /not proven/);
    assert.equal(status, 503);
    assert.notEqual(headers.get("retry-after"), null);
  } finally {
    for (const node of nodes) {
      node.lies = [];
    }
  }
});

test("a block above the view is proven in the heads that its read refreshed", async (t) => {
  const started = await startRecipe();
  t.after(() => started.close());
  const before = String((await requiredOf(started, "eth_blockNumber")).result);
  await chain.devnet.rpc("anvil_mine", "0x1");
  const next = `0x${(BigInt(before) + 1n).toString(16)}`;
  const { result, error, label } = await requiredOf(started, "eth_getBlockByNumber", next, false);
  assert.equal(error, undefined);
  assert.equal(label, `proven; block=${BigInt(next)}`);
  assert.equal(Object(result).number, next);
  const { result: receipts, error: unread } = await requiredOf(started, "eth_getBlockReceipts", next);
  assert.deepEqual([receipts, unread], [[], undefined]);
});

test("what cannot be proven fails with the reason, and what needs no proof does not", async () => {
  const [account] = chain.accounts;
  const call = { from: account, to: chain.token, data: "0x18160ddd" };
  const reasons: readonly (readonly [reason: string, method: string, ...params: readonly unknown[]])[] = [
    ["pending", "eth_getBalance", account, "pending"],
    ["pending", "eth_getLogs", { fromBlock: "pending" }],
    ["pending", "eth_call", call, "pending"],
    ["noProof", "eth_call", call, "latest"],
    ["method", "eth_estimateGas", call],
    ["method", "eth_createAccessList", call, "latest"],
    ["method", "eth_gasPrice"],
    ["method", "eth_feeHistory", "0x1", "latest", []],
    ["method", "debug_traceTransaction", chain.recent[0]?.transactions[0]],
    ["method", "eth_newBlockFilter"],
    ["method", "custom_method"],
    ["noProof", "eth_getTransactionByHash", WORD],
    ["noProof", "eth_getBlockByNumber", "0xffffff", true],
  ];
  for (const [reason, method, ...params] of reasons) {
    const { error } = await required(method, ...params);
    assert.equal(error?.data?.reason, reason, method);
    assert.equal(error?.data?.required, "proven");
    assert.ok(["stated", "checked"].includes(String(error?.data?.label)));
  }
  for (const method of ["eth_chainId", "net_version", "web3_clientVersion"]) {
    assert.equal((await required(method)).error, undefined, method);
  }
  const { error } = await required("eth_sendRawTransaction", "0x00");
  assert.equal(error?.data?.reason, undefined, "a node rejects it");
  assert.ok((await metric(service.opsUrl, "forebay_not_proven_total", 'reason="method"')) >= 7);
  assert.ok((await metric(service.opsUrl, "forebay_proof_answers_total", 'label="proven"')) > 0);
});

test("a hash and an index with the prefix 0X are proven too", async () => {
  const block = chain.recent.at(-1) ?? assert.fail();
  const upper = (hex: unknown): string => String(hex).replace("0x", "0X");
  for (const [method, named] of [
    ["eth_getTransactionByBlockHashAndIndex", block.hash],
    ["eth_getTransactionByBlockNumberAndIndex", block.number],
  ] as const) {
    const expected = await required(method, named, "0x0");
    const { result, error, label } = await required(method, upper(named), "0X0");
    assert.equal(error, undefined, method);
    assert.match(label ?? "", /^proven/, method);
    assert.deepEqual(result, expected.result, method);
  }
  const { result } = await required("eth_getBlockTransactionCountByHash", upper(block.hash));
  assert.deepEqual(result, await truth("eth_getBlockTransactionCountByHash", block.hash));
});

test("each item of a batch fails alone", async () => {
  const [account] = chain.accounts;
  const call = (id: number, method: string, ...params: readonly unknown[]) => ({ jsonrpc: "2.0", id, method, params });
  const response = await fetch(service.url, {
    method: "POST",
    headers: { "content-type": "application/json", ...KEY },
    body: JSON.stringify([call(1, "eth_getBalance", account), call(2, "eth_gasPrice")]),
  });
  const [balance, price] = (await response.json()) as { result?: unknown; error?: { data: { reason: string } } }[];
  assert.equal(balance?.result, await truth("eth_getBalance", account, "latest"));
  assert.equal(price?.error?.data.reason, "method");
});

test("with one origin every call fails, by a header too, and other clients are answered", async () => {
  const single = await createService({ nodes: [{ url: chain.devnet.anvilUrl }], pending: { mode: "node" } });
  try {
    const [account] = chain.accounts;
    const ask = async (headers: Readonly<Record<string, string>>) =>
      (await rpc(single.url, "eth_getBalance", [account, "latest"], headers)).body;
    const { error } = await ask(REQUIRE);
    assert.equal(error?.code, -32_000);
    assert.equal(error?.message, "not proven: no majority of several origins has the block");
    assert.equal((await ask({ "x-forebay-require": "checked" })).error?.code, -32_600);
    assert.equal((await ask({})).error, undefined);
  } finally {
    await single.close();
  }
});

test("a WebSocket of a client that requires proven answers gets them, and subscriptions to blocks and logs alone", async (t) => {
  const [account] = chain.accounts;
  const socket = await connectSocket(service.url, KEY);
  t.after(() => socket.close());
  assert.equal((await socket.call("eth_getBalance", account)).result, await truth("eth_getBalance", account, "latest"));
  for (const kind of [
    "pendingLogs",
    "transactionReceipts",
    "transactionInclusion",
    "newFlashblocks",
    "newPendingTransactions",
    "syncing",
    "other",
  ]) {
    const { error } = await socket.call("eth_subscribe", kind);
    assert.equal(error?.message, "not proven: answers of this method cannot be proven", kind);
  }
  const { error } = await socket.call("eth_subscribe", "logs", { fromBlock: "pending" });
  assert.equal(error?.message, "not proven: no header binds a pending block");
  const { result } = await socket.call("eth_subscribe", "newHeads");
  assert.deepEqual((await socket.call("eth_unsubscribe", result)).result, true);
});

test("with one origin, a WebSocket that requires proven answers has no subscription", async (t) => {
  const single = await createService({ nodes: [{ url: chain.devnet.anvilUrl }], pending: { mode: "node" } });
  t.after(() => single.close());
  const socket = await connectSocket(single.url, REQUIRE);
  t.after(() => socket.close());
  const { error } = await socket.call("eth_subscribe", "newHeads");
  assert.equal(error?.message, "not proven: no majority of several origins has the block");
});

const APPROVE = "0x095ea7b3";

/** Has the token emit a log in a new block. Returns the block. */
const emitLog = async (): Promise<Readonly<Record<string, unknown>>> => {
  const [from] = chain.accounts;
  const data = `${APPROVE}${"0".repeat(24)}${String(from).slice(2)}${"1".padStart(64, "0")}`;
  await chain.devnet.rpc("eth_sendTransaction", { from, to: chain.token, data, gas: "0x186a0" });
  await chain.devnet.rpc("anvil_mine", "0x1");
  return Object(await truth("eth_getBlockByNumber", "latest", false));
};

/** Lies about what subscriptions are told. */
const TOLD = new Set(["no receipts", "unknown field, and a state root", "hashes of a block", "logs"]);

test("while a provider lies, subscriptions that require proven answers get the truth", async (t) => {
  const [liar] = nodes;
  assert.ok(liar !== undefined);
  const started = await startRecipe({ blockTimeMs: 400 });
  t.after(() => started.close());
  const socket = await connectSocket(started.url, KEY);
  t.after(() => socket.close());
  const heads = await socket.subscribe("newHeads");
  const logs = await socket.subscribe("logs", { address: chain.token });
  const told: unknown[] = [];
  const expected: unknown[] = [];
  t.after(() => {
    liar.lies = [];
  });
  for (const lie of [...LIES, ...IGNORED].filter(({ name }) => TOLD.has(name))) {
    liar.lies = [lie];
    const { transactions, uncles, withdrawals, ...header } = await emitLog();
    told.push(header);
    expected.push(await truth("eth_getLogs", { blockHash: header.hash, address: chain.token }));
    await socket.atLeast(heads, told.length);
    await socket.atLeast(logs, expected.length);
  }
  assert.equal(told.length, TOLD.size);
  assert.deepEqual(common(heads), common(told));
  assert.deepEqual(common(logs), common(expected.flat()));
});
