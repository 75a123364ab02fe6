import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Address, formatQuantity, ZERO_ADDRESS } from "../../src/ethereum/hex.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { followHead } from "../support/servers/followHead.ts";
import { loadThread } from "../support/servers/loadThread.ts";
import { createService, type ServiceChain } from "../support/servers/service.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";
import type { BlockDraft } from "../world/state/blockDraft.ts";
import { StandInChain } from "../world/state/standInChain.ts";
import { wordOf } from "../world/state/stateKeys.ts";

/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
/** A node that lied has a vote on heads for a part of the block time. */
const SHORT_MS = 2_000;
/** A call whose proofs were too expensive is tried again after this time (callTable). */
const EXPENSIVE_RETRY_MS = 5_000;
const REQUIRE = { "x-forebay-require": "proven" };
const ACCOUNTS = Array.from({ length: 8 }, (_, index) => addressOf(index));
const [ALICE, BOB] = [addressOf(0), addressOf(1)];
const CONTRACT = addressOf(9);
/** Returns the value of slot 7. */
const CODE = "0x60075460005260206000f3";
/** One answer to a call in a hundred is compared with the node. Above that share, none is. */
const NOT_COMPARED = 0.5;

const deploy = (draft: BlockDraft): void => {
  draft.setCode(CONTRACT, CODE);
  draft.setNonce(CONTRACT, 1n);
  draft.setSlot(CONTRACT, wordOf(7n), 7n);
};

interface RigOptions {
  readonly state?: ServiceChain["state"];
  readonly lies?: readonly Lie[];
  /** Each has an origin of its own. */
  readonly nodes?: number;
  readonly blockTimeMs?: number;
}

const startRig = async (t: TestContext, { state, lies, nodes: count = 1, blockTimeMs = LONG_MS }: RigOptions = {}) => {
  t.mock.method(Math, "random", () => NOT_COMPARED);
  const chain = new StandInChain("amsterdam", true);
  chain.mine(
    ACCOUNTS.map((address) => [address, 1n]),
    deploy,
  );
  /** Seals a block that sets balances, and slots of the contract. */
  const mine = (balances: Parameters<StandInChain["mine"]>[0] = [], slots: Readonly<Record<number, bigint>> = {}) =>
    chain.mine(balances, (draft) => {
      for (const [slot, value] of Object.entries(slots)) {
        draft.setSlot(CONTRACT, wordOf(BigInt(slot)), value);
      }
    });
  const nodes = await Promise.all(
    Array.from({ length: count }, (_, index) => startWorldNode(t, chain, { lies: index === 0 ? lies : undefined })),
  );
  const options: ServiceChain = {
    nodes: nodes.map(({ url }, index) => ({
      url,
      name: `node${index}`,
      provider: `operator${index}`,
      priority: index,
    })),
    blockTimeMs,
    forks: "amsterdam",
    state: { waitMs: LONG_MS, ...state },
  };
  const service = await createService(options);
  t.after(() => service.close());
  const follow = async () => {
    await followHead(service, chain);
    const number = formatQuantity(chain.height);
    await until(async () => (await rpc(service.url, "eth_blockNumber")).body.result === number, "it is served");
  };
  const ask = async (method: string, params: readonly unknown[], headers = {}) => {
    const { body, headers: received } = await rpc(service.url, method, params, headers);
    const reason = (body.error as { readonly data?: { readonly reason?: string } } | undefined)?.data?.reason;
    return { result: body.result, reason, label: received.get("x-forebay-proof") };
  };
  const balance = (address: Address, tag: unknown = "latest", headers = {}) =>
    ask("eth_getBalance", [address, tag], headers);
  /** Reads the same values in several new blocks, after which it pays to follow. */
  const learn = async () => {
    for (let block = 0; block < 4; block++) {
      mine();
      await follow();
      for (const address of ACCOUNTS) {
        await balance(address);
      }
    }
  };
  const callsOf = (method: string) => nodes.reduce((sum, node) => sum + (node.calls.get(method) ?? 0), 0);
  return { mine, chain, service, nodes, follow, ask, balance, learn, callsOf };
};

const lieAbout = (method: string, result: (result: unknown) => unknown): Lie => ({
  ...{ name: method, methods: [method], result },
});

const proven = (number: number): string => `proven; block=${number}`;

test("on a chain with access lists, a value is proven once, and carried over later blocks without a request", async (t) => {
  const { mine, chain, follow, ask, balance, learn, callsOf } = await startRig(t);
  await learn();
  const reads = [
    ["eth_getBalance", [ALICE], "0x1"],
    ["eth_getTransactionCount", [CONTRACT], "0x1"],
    ["eth_getStorageAt", [CONTRACT, "0x7"], wordOf(7n)],
    ["eth_getStorageAt", [CONTRACT, "0x9"], wordOf(0n)],
    ["eth_getCode", [CONTRACT], CODE],
    ["eth_getCode", [ALICE], "0x"],
  ] as const;
  for (const [method, params, expected] of reads) {
    const { result, label } = await ask(method, [...params, "latest"]);
    assert.equal(result, expected, method);
    assert.equal(label, proven(chain.height), `${method}, first sight`);
  }
  const proofs = callsOf("eth_getProof");
  for (let turn = 0; turn < 3; turn++) {
    mine([[BOB, BigInt(turn + 2)]], { 1: BigInt(turn + 1) });
    await follow();
    for (const [method, params, expected] of reads) {
      const { result, label } = await ask(method, [...params, "latest"]);
      assert.equal(result, expected, method);
      assert.equal(label, proven(chain.height), `${method}, carried`);
    }
    const bob = await balance(BOB);
    assert.deepEqual([bob.result, bob.label], [formatQuantity(turn + 2), proven(chain.height)], "from the list");
    const slot = await ask("eth_getStorageAt", [CONTRACT, "0x1", "latest"]);
    assert.deepEqual([slot.result, slot.label], [wordOf(BigInt(turn + 1)), proven(chain.height)], "from the list");
  }
  assert.equal(callsOf("eth_getProof"), proofs, "no proof is read again");
  assert.equal((await balance(BOB, formatQuantity(chain.height - 1))).result, "0x3", "at an older block");
});

test("without state.prove, nodes state what the lists do not have", async (t) => {
  const { mine, follow, balance, learn, callsOf } = await startRig(t, { state: { prove: false } });
  await learn();
  mine([[BOB, 2n]]);
  await follow();
  assert.match((await balance(BOB)).label ?? "", /^proven/, "from the list");
  assert.match((await balance(ALICE)).label ?? "", /^stated/);
  assert.equal(callsOf("eth_getProof"), 0);
});

test("a block without a list ends the proofs behind it, and later proofs hold again", async (t) => {
  let isLying = false;
  const lies = [lieAbout("eth_getBlockAccessList", (list) => (isLying ? [] : list))];
  const { mine, chain, follow, balance, learn } = await startRig(t, { lies });
  await learn();
  assert.equal((await balance(ALICE)).label, proven(chain.height));
  isLying = true;
  mine([[ALICE, 5n]]);
  await follow();
  const { result, label } = await balance(ALICE);
  assert.deepEqual([result, label], ["0x5", proven(chain.height)], "a proof of the new block");
  isLying = false;
  mine();
  await follow();
  assert.deepEqual(await balance(ALICE), { result: "0x5", reason: undefined, label: proven(chain.height) });
});

test("a false proof is not served, and nothing of it is carried", async (t) => {
  const lies = [
    lieAbout("eth_getProof", (proof) => ({ ...Object(proof), balance: "0xbad" })),
    lieAbout("eth_getBalance", () => "0xbad"),
  ];
  const { mine, chain, follow, balance, learn } = await startRig(t, { lies, nodes: 2, blockTimeMs: SHORT_MS });
  await learn();
  for (let turn = 0; turn < 3; turn++) {
    mine([[BOB, BigInt(turn)]]);
    await follow();
    for (const address of ACCOUNTS) {
      const { result, label } = await balance(address);
      if (label?.startsWith("proven") === true) {
        assert.equal(result, address === BOB ? formatQuantity(turn) : "0x1");
      }
    }
  }
  assert.equal((await balance(ALICE)).label, proven(chain.height));
});

test("a reorganisation undoes what was proven at its blocks", async (t) => {
  const { mine, chain, follow, balance, learn } = await startRig(t);
  await learn();
  mine([[BOB, 2n]]);
  await follow();
  assert.deepEqual([(await balance(BOB)).result, (await balance(BOB)).label], ["0x2", proven(chain.height)]);
  const orphan = chain.head.hash;
  chain.rewind(2);
  mine();
  mine([[BOB, 9n]]);
  mine();
  await follow();
  assert.notEqual(chain.at(chain.height - 1)?.hash, orphan);
  assert.deepEqual([(await balance(BOB)).result, (await balance(BOB)).label], ["0x9", proven(chain.height)]);
  const before = await balance(BOB, formatQuantity(chain.height - 2));
  assert.equal(before.result, "0x1");
});

test("a client that requires proven answers gets known ones without a request", async (t) => {
  const { mine, chain, service, follow, balance, learn, callsOf } = await startRig(t, { nodes: 2 });
  await learn();
  mine();
  await follow();
  for (const address of ACCOUNTS) {
    assert.equal((await balance(address, "latest", REQUIRE)).label, proven(chain.height));
  }
  mine([[BOB, 3n]]);
  await follow();
  const asked = () => callsOf("eth_getProof") + callsOf("eth_getBalance");
  const before = asked();
  const { result, label } = await balance(BOB, "latest", REQUIRE);
  assert.deepEqual([result, label], ["0x3", proven(chain.height)]);
  assert.equal((await balance(ALICE, "latest", REQUIRE)).label, proven(chain.height));
  assert.equal(asked(), before);
  const fresh = await balance(ALICE, "latest", { ...REQUIRE, "cache-control": "no-cache" });
  assert.deepEqual([fresh.result, fresh.label], ["0x1", proven(chain.height)]);
  assert.equal(asked(), before + 1, "with no-cache, a node is asked");
  assert.equal(await metric(service.opsUrl, "forebay_not_proven_total"), 0);
});

test("a call on proven values is proven, and stays so until a value that it read is written", async (t) => {
  const { mine, chain, service, follow, ask, learn, callsOf } = await startRig(t, { nodes: 2 });
  await learn();
  await loadThread(service);
  const call = (headers = {}) => ask("eth_call", [{ to: CONTRACT, gas: "0x30000" }, "latest"], headers);
  assert.match((await call()).label ?? "", /^stated/, "first sight");
  await until(async () => {
    await learn();
    return (await call()).label === proven(chain.height);
  }, "the call is learned on proven values");
  const before = callsOf("eth_call");
  mine([[BOB, 2n]], { 1: 1n });
  await follow();
  for (const headers of [{}, REQUIRE]) {
    assert.deepEqual(await call(headers), { result: wordOf(7n), reason: undefined, label: proven(chain.height) });
  }
  mine([], { 7: 8n });
  await follow();
  const { result, label } = await call();
  assert.deepEqual([result, label], [wordOf(8n), proven(chain.height)], "executed on the value of the list");
  assert.equal(callsOf("eth_call"), before, "no node was asked");
});

test("a call that must be proven is proven at its first request, also if the cache has the answer of a node", async (t) => {
  const { mine, chain, service, follow, ask, learn, callsOf } = await startRig(t, { nodes: 2 });
  await learn();
  await loadThread(service);
  const call = (gas: string, headers = {}) => ask("eth_call", [{ to: CONTRACT, gas }, "latest"], headers);
  assert.match((await call("0x30000")).label ?? "", /^stated/);
  let before = 0;
  for (const gas of ["0x30000", "0x30001"]) {
    before = callsOf("eth_call");
    const together = await Promise.all(Array.from({ length: 4 }, () => call(gas, REQUIRE)));
    for (const answer of together) {
      assert.deepEqual(answer, { result: wordOf(7n), reason: undefined, label: proven(chain.height) });
    }
  }
  assert.equal(callsOf("eth_call"), before + 1, "simultaneous requests ask a node once");
  before = callsOf("eth_call");
  mine([[BOB, 2n]]);
  await follow();
  for (const gas of ["0x30000", "0x30001"]) {
    assert.equal((await call(gas, REQUIRE)).label, proven(chain.height));
  }
  assert.equal(callsOf("eth_call"), before, "no node was asked");
  assert.equal(await metric(service.opsUrl, "forebay_not_proven_total"), 0);
});

test("a revert that a node forges does not reach a client that requires a proof: it gets the result of the execution here", async (t) => {
  let isLying = false;
  const lie: Lie = {
    ...{ name: "a revert", methods: ["eth_call"] },
    response: ({ id, ...response }, { params: [call] }) =>
      isLying && Object(call).to === CONTRACT
        ? { jsonrpc: "2.0", id, error: { code: 3, message: "execution reverted", data: "0xdead" } }
        : { ...response, id },
  };
  const { mine, chain, service, follow, ask, learn } = await startRig(t, { nodes: 2, lies: [lie] });
  await learn();
  await loadThread(service);
  isLying = true;
  const call = () => ask("eth_call", [{ to: CONTRACT, gas: "0x30000" }, "latest"], REQUIRE);
  assert.deepEqual(await call(), { result: wordOf(7n), reason: undefined, label: proven(chain.height) });
  mine([], { 7: 8n });
  await follow();
  assert.deepEqual(await call(), { result: wordOf(8n), reason: undefined, label: proven(chain.height) });
  const forged = await ask("eth_call", [{ to: CONTRACT, gas: "0x30000", gasPrice: "0x0" }, "latest"], REQUIRE);
  assert.equal(forged.reason, "noProof", "a call that cannot be proven");
});

test("values that an execution has read are proven for a call that must be proven", async (t) => {
  const { mine, chain, service, follow, ask, learn } = await startRig(t, { nodes: 2 });
  await learn();
  await loadThread(service);
  mine();
  await follow();
  const call = { to: CONTRACT, gas: "0x30000" };
  const { result } = await ask("eth_simulateV1", [{ blockStateCalls: [{ calls: [call] }] }, "latest"]);
  assert.ok(Array.isArray(result));
  const answer = await ask("eth_call", [call, "latest"], REQUIRE);
  assert.deepEqual(answer, { result: wordOf(7n), reason: undefined, label: proven(chain.height) });
});

test("a call that was learned without proofs is proven when a client requires it, also once it was executed again", async (t) => {
  const { mine, chain, service, follow, ask, learn } = await startRig(t, { nodes: 2 });
  await learn();
  await loadThread(service);
  const call = { to: CONTRACT, gas: "0x30000" };
  const simulation = [{ blockStateCalls: [{ calls: [call] }] }, "latest"];
  assert.ok(Array.isArray((await ask("eth_simulateV1", simulation)).result));
  const answer = (headers = {}) => ask("eth_call", [call, "latest"], headers);
  await until(async () => {
    mine();
    await follow();
    await answer();
    const { headers } = await rpc(service.url, "eth_call", [call, "latest"]);
    assert.match(headers.get("x-forebay-proof") ?? "", /^stated/);
    return headers.get("cache-status")?.includes("detail=state") === true;
  }, "the call is learned on stated values");
  for (const value of [8n, 9n]) {
    mine([], { 7: value });
    await follow();
    const expected = { result: wordOf(value), reason: undefined, label: proven(chain.height) };
    assert.deepEqual(await answer(REQUIRE), expected, "a value that it read was written");
  }
});

test("a call that cannot be proven asks a node once at a block", async (t) => {
  const { mine, service, follow, ask, learn, callsOf } = await startRig(t, { nodes: 2 });
  await learn();
  await loadThread(service);
  // Clients treat prices in calls differently.
  const priced = { to: CONTRACT, gas: "0x30000", gasPrice: "0x0" };
  const fails = async () => assert.equal((await ask("eth_call", [priced, "latest"], REQUIRE)).reason, "noProof");
  await fails();
  for (let block = 0; block < 2; block++) {
    mine([], { 1: BigInt(block) });
    await follow();
    const before = callsOf("eth_call");
    await fails();
    await fails();
    assert.equal(callsOf("eth_call"), before + 1);
  }
});

test("a call whose proofs are too expensive is refused at the next block without a request to a node", async (t) => {
  const state = { unitsPerMinute: 1 };
  const { mine, service, follow, ask, learn, callsOf } = await startRig(t, { state, nodes: 2 });
  await learn();
  await loadThread(service);
  const refuse = async (call: object): Promise<number> => {
    mine();
    await follow();
    const before = callsOf("eth_call");
    assert.equal((await ask("eth_call", [call, "latest"], REQUIRE)).reason, "noProof");
    return callsOf("eth_call") - before;
  };
  for (let gas = 0x30000; ; gas++) {
    const call = { to: CONTRACT, gas: formatQuantity(BigInt(gas)) };
    const beginMs = performance.now();
    assert.ok((await refuse(call)) > 0, "a node is asked the first time");
    const asked = await refuse(call);
    if (performance.now() - beginMs < EXPENSIVE_RETRY_MS) {
      assert.equal(asked, 0);
      return;
    }
  }
});

test("a call on values that are proven needs no units for proofs", async (t) => {
  const { mine, chain, service, follow, ask, learn, callsOf } = await startRig(t, {
    state: { unitsPerMinute: 0 },
    nodes: 2,
  });
  await learn();
  await loadThread(service);
  mine();
  await follow();
  const reads = [
    ["eth_getCode", [CONTRACT]],
    ["eth_getStorageAt", [CONTRACT, "0x7"]],
    ...[CONTRACT, ZERO_ADDRESS].flatMap((address) => [
      ["eth_getBalance", [address]] as const,
      ["eth_getTransactionCount", [address]] as const,
    ]),
  ] as const;
  for (const [method, params] of reads) {
    assert.equal((await ask(method, [...params, "latest"], REQUIRE)).label, proven(chain.height));
  }
  const before = callsOf("eth_getProof");
  const answer = await ask("eth_call", [{ to: CONTRACT, gas: "0x30000" }, "latest"], REQUIRE);
  assert.deepEqual(answer, { result: wordOf(7n), reason: undefined, label: proven(chain.height) });
  assert.equal(callsOf("eth_getProof"), before);
});

test("a proven value that a node contradicts stays known, and the node that lied is suspended", async (t) => {
  let isLying = false;
  const lies = [lieAbout("eth_getBalance", (value) => (isLying ? "0xbad" : value))];
  const rig = await startRig(t, { lies, nodes: 2, blockTimeMs: SHORT_MS });
  const { mine, chain, service, follow, balance, learn, callsOf } = rig;
  await learn();
  assert.equal((await balance(ALICE)).label, proven(chain.height));
  isLying = true;
  const fresh = await balance(ALICE, "latest", { "cache-control": "no-cache" });
  assert.deepEqual([fresh.result, fresh.label?.split(";")[0]], ["0xbad", "stated"]);
  const count = (name: string, ...labels: readonly string[]) => metric(service.opsUrl, `forebay_${name}`, ...labels);
  const wrong = (node: string) => count("verify_failures_total", 'check="state"', `node="${node}"`);
  await until(async () => (await wrong("node0")) === 1, "the lie is found");
  assert.equal(await count("state_differences_total", 'kind="read"', 'proof="proven"'), 1);
  assert.equal(await count("state_drops_total", 'reason="difference"'), 0);
  const known = { result: "0x1", reason: undefined, label: proven(chain.height) };
  assert.deepEqual([await count("upstream_suspended{", 'node="node0"'), await wrong("node1")], [1, 0]);
  const asked = () => callsOf("eth_getProof") + callsOf("eth_getBalance");
  const before = asked();
  for (const headers of [{}, REQUIRE]) {
    assert.deepEqual(await balance(ALICE, "latest", headers), known);
  }
  mine();
  await follow();
  assert.deepEqual(await balance(ALICE), { ...known, label: proven(chain.height) }, "carried");
  assert.equal(asked(), before, "no node was asked");
});
