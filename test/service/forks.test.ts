import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode, type FakeNodeOptions } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

const UNICHAIN = 130;
const SEPOLIA = 11_155_111;
const HOODI = 560_048;
/** 2026-11-20, after all forks of the table. */
const NOVEMBER_2026 = 1_795_132_800;
const AMSTERDAM_ON_SEPOLIA = 1_791_294_816;

const AMSTERDAM_FIELDS = { blockAccessListHash: `0x${"ab".repeat(32)}`, slotNumber: "0x7" };

const CONTRACT = `0x${"cc".repeat(20)}`;
/** Returns CLZ(1). */
const CLZ_CODE = "0x60011e5f5260205ff3";
const CALL = { to: CONTRACT };
const SIMULATION = [
  { blockStateCalls: [{ stateOverrides: { [CONTRACT]: { code: CLZ_CODE } }, calls: [CALL] }] },
  "latest",
];
const FROM_NODE = [{ number: "0x1", calls: [], madeBy: "node" }];

const HANDLERS: FakeNodeOptions["handlers"] = {
  eth_getCode: () => "0x",
  eth_getTransactionCount: () => "0x0",
  eth_simulateV1: () => FROM_NODE,
};

interface Blocks {
  readonly chainId: number;
  readonly startSeconds: number;
  /** More fields of each block. */
  readonly fields?: object;
}

const createRig = async (t: TestContext, blocks: Blocks, handlers: FakeNodeOptions["handlers"] = {}) => {
  const chain = createFakeChain(blocks);
  const eth_getBlockByNumber = ([tag]: readonly unknown[]) => {
    const number = tag === "latest" ? chain.latest.number : Number(tag);
    return { ...chain.blocks[Number(number)]?.json, ...blocks.fields };
  };
  const eth_getBlockByHash = ([hash]: readonly unknown[]) => ({ ...chain.byHash(hash)?.json, ...blocks.fields });
  const reads = { eth_getBlockByNumber, eth_getBlockByHash };
  const node = await createFakeNode({ chain, handlers: { ...reads, ...HANDLERS, ...handlers } });
  const service = await createService({ nodes: [{ url: node.url }], blockTimeMs: 200 });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const simulate = async () => (await rpc(service.url, "eth_simulateV1", SIMULATION)).body.result;
  const metric = async (name: string) => {
    const { values } = (await service.telemetry.registry.getSingleMetric(`forebay_${name}`)?.get()) ?? { values: [] };
    return values;
  };
  const forwarded = async () =>
    (await metric("simulate_runs_total")).find(
      ({ labels }) => labels.kind === "simulate" && labels.outcome === "forwarded",
    )?.value;
  const isUnknown = async () => (await metric("rules_unknown"))[0]?.value;
  return { node, chain, service, simulate, forwarded, isUnknown };
};

/** The return data and the status of the only call. */
const callOf = (result: unknown) => {
  const [block] = result as { calls: { returnData: string; status: string }[] }[];
  return block?.calls[0];
};

test("CLZ is executed on Unichain since Karst", async (t) => {
  const { simulate, node, isUnknown } = await createRig(t, { chainId: UNICHAIN, startSeconds: NOVEMBER_2026 });
  const call = callOf(await simulate());
  assert.deepEqual([call?.status, BigInt(call?.returnData ?? "0x0")], ["0x1", 255n]);
  assert.equal(node.count("eth_simulateV1"), 0);
  assert.equal(await isUnknown(), 0);
});

test("a simulation on Sepolia since Amsterdam is executed, and its blocks have the fields of Amsterdam", async (t) => {
  const rig = await createRig(t, { chainId: SEPOLIA, startSeconds: AMSTERDAM_ON_SEPOLIA, fields: AMSTERDAM_FIELDS });
  const result = await rig.simulate();
  assert.equal(callOf(result)?.status, "0x1");
  const [{ slotNumber, blockAccessListHash }] = result as [Record<string, unknown>];
  assert.deepEqual([slotNumber, blockAccessListHash], [undefined, `0x${"00".repeat(32)}`]);
  assert.equal(rig.node.count("eth_simulateV1"), 0);
  assert.equal(await rig.isUnknown(), 0);
});

test("a simulation on a block without the fields of its fork is forwarded with its payload unchanged", async (t) => {
  const rig = await createRig(t, { chainId: SEPOLIA, startSeconds: AMSTERDAM_ON_SEPOLIA });
  assert.deepEqual(await rig.simulate(), FROM_NODE);
  const sent = rig.node.requests.find(({ body }) => body.includes("eth_simulateV1"));
  const latest = { blockHash: rig.chain.latest.hash };
  assert.deepEqual(JSON.parse(sent?.body ?? "{}").params, [SIMULATION[0], latest]);
  assert.equal(await rig.forwarded(), 1);
});

test("a simulation on Sepolia can reach Amsterdam", async (t) => {
  const rig = await createRig(t, { chainId: SEPOLIA, startSeconds: AMSTERDAM_ON_SEPOLIA - 1_000 });
  const time = `0x${AMSTERDAM_ON_SEPOLIA.toString(16)}`;
  const crossing = [{ blockStateCalls: [{ calls: [CALL] }, { blockOverrides: { time }, calls: [CALL] }] }, "latest"];
  const [before, after] = (await rpc(rig.service.url, "eth_simulateV1", crossing)).body.result as Record<
    string,
    unknown
  >[];
  assert.deepEqual([before?.blockAccessListHash, after?.blockAccessListHash], [undefined, `0x${"00".repeat(32)}`]);
  assert.equal(rig.node.count("eth_simulateV1"), 0);
});

test("nothing is executed on a block with fields of no known fork", async (t) => {
  const chain = createFakeChain({ chainId: HOODI, startSeconds: NOVEMBER_2026 });
  let extra: object = {};
  const node = await createFakeNode({
    chain,
    handlers: {
      ...HANDLERS,
      eth_getBlockByNumber: ([tag]) => {
        const number = tag === "latest" ? chain.latest.number : Number(tag);
        return { ...chain.blocks[Number(number)]?.json, ...(tag === "latest" ? extra : {}) };
      },
    },
  });
  const service = await createService({ nodes: [{ url: node.url }], blockTimeMs: 200 });
  t.after(async () => {
    await service.close();
    await node.close();
  });
  const simulate = async () => (await rpc(service.url, "eth_simulateV1", SIMULATION)).body.result;
  const followHead = () => Promise.all(service.chains.map(({ upstreams }) => upstreams.heads.refresh()));
  assert.equal(callOf(await simulate())?.status, "0x1");
  extra = AMSTERDAM_FIELDS;
  chain.mine();
  await followHead();
  assert.deepEqual(await simulate(), FROM_NODE);
  extra = {};
  chain.mine();
  await followHead();
  assert.equal(callOf(await simulate())?.status, "0x1");
});

const PRAGUE_PRECOMPILES = Object.fromEntries(
  Array.from({ length: 17 }, (_, at) => [`P${at}`, `0x${(at + 1).toString(16).padStart(40, "0")}`]),
);
const BPO2 = {
  activationTime: 1_762_955_544,
  blobSchedule: { target: 14, max: 21, baseFeeUpdateFraction: 11_684_671 },
  chainId: "0x88bb0",
  precompiles: { ...PRAGUE_PRECOMPILES, P256VERIFY: `0x${"100".padStart(40, "0")}` },
  systemContracts: { BEACON_ROOTS_ADDRESS: "0x000F3df6D732807Ef1319fB7B8bB8522d0Beac02" },
};

test("with a node whose eth_config has the same rules, forebay executes calls", async (t) => {
  const eth_config = () => ({ current: BPO2, next: null, last: null });
  const { simulate, isUnknown } = await createRig(t, { chainId: HOODI, startSeconds: NOVEMBER_2026 }, { eth_config });
  assert.equal(callOf(await simulate())?.status, "0x1");
  assert.equal(await isUnknown(), 0);
});

test("with a node whose eth_config has newer rules, calls are forwarded", async (t) => {
  const next = { ...BPO2, activationTime: NOVEMBER_2026 - 60 };
  const eth_config = () => ({ current: next, next: null, last: next });
  const rig = await createRig(t, { chainId: HOODI, startSeconds: NOVEMBER_2026 }, { eth_config });
  assert.deepEqual(await rig.simulate(), FROM_NODE);
  assert.equal(await rig.isUnknown(), 1);
  assert.equal(await rig.forwarded(), 1);
});

test("future rules of a node's eth_config have no effect yet", async (t) => {
  const next = { ...BPO2, activationTime: NOVEMBER_2026 + 86_400 };
  const eth_config = () => ({ current: BPO2, next, last: next });
  const { simulate, isUnknown } = await createRig(t, { chainId: HOODI, startSeconds: NOVEMBER_2026 }, { eth_config });
  assert.equal(callOf(await simulate())?.status, "0x1");
  assert.equal(await isUnknown(), 0);
});
