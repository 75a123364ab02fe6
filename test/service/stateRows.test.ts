import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import type { Address } from "../../src/ethereum/hex.ts";
import { type RestorableState, type SavedState, StateRows } from "../../src/state/rows/stateRows.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import type { Lie } from "../support/fakes/lyingNode.ts";
import { followHead } from "../support/servers/followHead.ts";
import { startRedis } from "../support/servers/redis.ts";
import { createService, type Service, type ServiceChain } from "../support/servers/service.ts";
import { changeRows } from "../support/state/changedRows.ts";
import { startWorldNode } from "../world/nodes/worldNode.ts";
import { StandInChain } from "../world/state/standInChain.ts";

/** Long, so that no read is late on a busy machine. The test refreshes the heads itself. */
const LONG_MS = 20_000;
const STATE_HIT = "forebay; hit; detail=state";
const ACCOUNTS = Array.from({ length: 8 }, (_, index) => addressOf(index));
const [ALICE, BOB] = [addressOf(0), addressOf(1)];
/** More blocks than the ring has after a start. */
const MISSED = 100;
/** Not among the accounts: no value of it is stored. */
const UNREAD = addressOf(ACCOUNTS.length);
/** One answer of a hundred is compared with the node. Above that share, none is. */
const NOT_COMPARED = 0.5;

/** With them, following always pays. */
const FREE_LISTS = { state: { units: { "eth_getBlockAccessList*": 0 } } };

interface RigOptions {
  /** What `Math.random` returns. */
  readonly share?: number;
  /** The node has traces instead of access lists. */
  readonly hasTraces?: boolean;
  readonly lies?: readonly Lie[];
}

/** Creates a chain, its node, and a data folder that outlives the services. */
const createRig = async (t: TestContext, { share = NOT_COMPARED, hasTraces = false, lies }: RigOptions = {}) => {
  t.mock.method(Math, "random", () => share);
  const parent = await mkdtemp(join(tmpdir(), "forebay-rows-"));
  t.after(() => rm(parent, { recursive: true, force: true }));
  const folder = join(parent, "data");
  const chain = new StandInChain(hasTraces ? "prague" : "amsterdam");
  chain.mine(ACCOUNTS.map((address) => [address, 1n]));
  const node = await startWorldNode(t, chain, { traces: hasTraces ? "geth" : undefined, lies });
  const start = async (options: Partial<ServiceChain> = {}, { isLocked = false, ...cache }: StartOptions = {}) => {
    const service = await createService(
      {
        ...{ nodes: [{ url: node.url, name: "own" }], blockTimeMs: LONG_MS, ...(hasTraces && { forks: "prague" }) },
        ...options,
        state: { waitMs: LONG_MS, ...options.state },
      },
      { server: { dataDir: folder }, cache },
    );
    t.after(() => service.close());
    if (!isLocked) {
      await untilOpen(service);
    }
    return service;
  };
  const follow = (service: Service) => followHead(service, chain);
  /** Reads all accounts in several blocks, until it pays to follow, and all are known. A busy machine needs more blocks. */
  const learn = async (service: Service) => {
    for (let count = 0, known = 0; count < 4 || known < ACCOUNTS.length; count++) {
      chain.mine();
      await follow(service);
      known = 0;
      for (const address of ACCOUNTS) {
        const { headers } = await balance(service, address);
        known += headers.get("cache-status") === STATE_HIT ? 1 : 0;
      }
    }
  };
  const asked = () => node.calls.get("eth_getBalance") ?? 0;
  return { chain, folder, node, start, follow, learn, asked };
};

interface StartOptions {
  readonly redis?: string;
  /** Another service has the folder. */
  readonly isLocked?: boolean;
}

const untilOpen = ({ opsUrl }: Service) =>
  until(async () => (await metric(opsUrl, "forebay_disk_up")) === 1, "the folder is open");
const balance = ({ url }: Service, address: Address) => rpc(url, "eth_getBalance", [address, "latest"]);
const balances = async (service: Service): Promise<readonly unknown[]> =>
  Promise.all(ACCOUNTS.map(async (address) => (await balance(service, address)).body.result));
/** Reads that a node answered. Comparisons in the background are not among them. */
const missesOf = ({ opsUrl }: Service) => metric(opsUrl, "forebay_state_lookups_total", 'outcome="miss"');
/** Restored values answer once they passed a check. */
const isFollowing = async ({ opsUrl }: Service) =>
  (await metric(opsUrl, "forebay_state_following")) === 1 && (await metric(opsUrl, "forebay_state_unchecked")) === 0;

test("known state survives a restart, and blocks that were missed are read", async (t) => {
  const { chain, start, follow, learn } = await createRig(t);
  const before = await start();
  await learn(before);
  await before.close();
  chain.mine([[BOB, 2n]]);
  chain.mine();
  const after = await start();
  await until(() => isFollowing(after), "the state is followed");
  assert.deepEqual(await balances(after), ["0x1", "0x2", ...Array.from({ length: 6 }, () => "0x1")]);
  const alice = await balance(after, ALICE);
  assert.equal(alice.headers.get("cache-status"), STATE_HIT);
  chain.mine([[ALICE, 9n]]);
  await follow(after);
  assert.deepEqual((await balances(after)).slice(0, 3), ["0x9", "0x2", "0x1"]);
  assert.equal(await missesOf(after), 0);
});

test("known state survives a restart after more blocks than a start reads", async (t) => {
  const { chain, start, follow, learn } = await createRig(t);
  const before = await start(FREE_LISTS);
  await learn(before);
  await before.close();
  chain.mine([[BOB, 2n]]);
  for (let block = 1; block < MISSED; block++) {
    chain.mine();
  }
  const after = await start(FREE_LISTS);
  await until(() => isFollowing(after), "the state is followed");
  await follow(after);
  assert.deepEqual(await balances(after), ["0x1", "0x2", ...Array.from({ length: 6 }, () => "0x1")]);
  assert.equal(await missesOf(after), 0);
});

test("a process is ready when its known state is restored, and the blocks since then are applied", async (t) => {
  const { chain, start, learn } = await createRig(t);
  const before = await start();
  await learn(before);
  await before.close();
  chain.mine([[BOB, 2n]]);
  const restoring = Promise.withResolvers<void>();
  const { restore } = StateRows.prototype;
  t.mock.method(StateRows.prototype, "restore", async function (this: StateRows, state: RestorableState) {
    await restoring.promise;
    return restore.call(this, state);
  });
  const after = await start({}, { isLocked: true });
  const readiness = () => fetch(`${after.opsUrl}/readyz`);
  assert.match(await (await readiness()).text(), /known state is being restored/);
  restoring.resolve();
  await until(async () => (await readiness()).ok, "it is ready");
  assert.deepEqual((await balances(after)).slice(0, 3), ["0x1", "0x2", "0x1"]);
  assert.equal(await missesOf(after), 0);
});

test("a restart on another branch restores codes alone", async (t) => {
  const { chain, start, learn, asked } = await createRig(t);
  const before = await start();
  await learn(before);
  chain.mine([[BOB, 2n]]);
  await followHead(before, chain);
  assert.equal((await balance(before, BOB)).body.result, "0x2");
  await before.close();
  chain.rewind(1);
  chain.mine([[ALICE, 3n]]);
  chain.mine();
  const calls = asked();
  const after = await start();
  assert.deepEqual(await balances(after), ["0x3", ...Array.from({ length: 7 }, () => "0x1")]);
  assert.ok(asked() - calls >= ACCOUNTS.length);
  assert.equal(await metric(after.opsUrl, "forebay_state_drops_total"), 0, "codes are not dropped with values");
});

/** Returns the function that saves the known state of all services. */
const createSave = (t: TestContext) => {
  const begun: StateRows[] = [];
  const { begin } = StateRows.prototype;
  t.mock.method(StateRows.prototype, "begin", function (this: StateRows, state: SavedState) {
    begun.push(this);
    begin.call(this, state);
  });
  return () => Promise.all(begun.map((rows) => rows.save()));
};

test("a later save has what changed, and a restart the newest of each value", async (t) => {
  const { chain, folder, start, follow, learn } = await createRig(t);
  const save = createSave(t);
  const before = await start();
  await learn(before);
  await save();
  chain.mine([[BOB, 2n]]);
  await follow(before);
  // It waits for the write set.
  assert.equal((await balance(before, BOB)).body.result, "0x2");
  await save();
  await before.close();
  const database = new DatabaseSync(join(folder, "forebay.db"));
  const sizes = database.prepare("SELECT length(rows) AS bytes FROM state_rows ORDER BY number").all();
  database.close();
  assert.equal(sizes.length, 2);
  assert.ok(Number(sizes[1]?.bytes) < Number(sizes[0]?.bytes) / 2, JSON.stringify(sizes));
  const after = await start();
  await until(() => isFollowing(after), "the state is followed");
  assert.deepEqual(await balances(after), ["0x1", "0x2", ...Array.from({ length: 6 }, () => "0x1")]);
  assert.equal(await missesOf(after), 0);
});

test("with Redis, the data folder holds known state, and no entries", async (t) => {
  const { start, learn } = await createRig(t);
  const { url: redis } = await startRedis(t);
  const before = await start({}, { redis });
  await learn(before);
  await before.close();
  const after = await start({}, { redis });
  await until(() => isFollowing(after), "the state is followed");
  assert.equal((await balance(after, ALICE)).headers.get("cache-status"), STATE_HIT);
  assert.equal(await metric(after.opsUrl, "forebay_disk_entries"), 0);
});

const LISTS = ["eth_getBlockAccessList", "eth_getBlockAccessListByBlockHash"];

for (const [reason, isKept] of [
  ["noWriteSet", true],
  ["nodeChanged", false],
] as const) {
  test(`a process that is killed after a drop (${reason}) ${isKept ? "keeps" : "loses"} what was saved before`, async (t) => {
    let isListRight = true;
    const lies = [{ name: "list", methods: LISTS, result: (result: unknown) => (isListRight ? result : []) }];
    const { chain, start, follow, learn } = await createRig(t, { lies });
    const save = createSave(t);
    const options = { ...FREE_LISTS, allowNamespaces: ["anvil"] };
    const before = await start(options);
    await learn(before);
    await save();
    // A killed process saves nothing at its end.
    const { mock } = t.mock.method(StateRows.prototype, "save", async () => undefined);
    if (reason === "noWriteSet") {
      isListRight = false;
      chain.mine([[BOB, 2n]]);
      await follow(before);
    } else {
      await rpc(before.url, "anvil_setBalance", [ALICE, "0x1"]);
    }
    const isDropped = async () => (await metric(before.opsUrl, "forebay_state_drops_total", `reason="${reason}"`)) > 0;
    await until(isDropped, "all is dropped");
    await before.close();
    mock.restore();
    isListRight = true;
    const after = await start(options);
    await until(() => isFollowing(after), "the state is followed");
    const misses = await missesOf(after);
    await balances(after);
    assert.equal((await missesOf(after)) - misses, isKept ? 0 : ACCOUNTS.length);
  });
}

const RESTORED = "known state is restored from the data folder";

for (const [what, readsBefore] of [
  ["that follows nothing yet", 0],
  ["that follows state itself", 4],
] as const) {
  test(`a process ${what} takes over the known state with the folder`, async (t) => {
    const { chain, start, follow, learn } = await createRig(t);
    const before = await start();
    await learn(before);
    const after = await start({}, { isLocked: true });
    const info = t.mock.method(after.telemetry.log, "info");
    for (let count = 0; count < readsBefore; count++) {
      chain.mine([[BOB, BigInt(count)]]);
      await follow(before);
      await follow(after);
      await balance(before, ALICE);
      await balance(after, BOB);
      await balance(after, BOB);
    }
    const misses = await missesOf(after);
    await before.close();
    await untilOpen(after);
    await until(() => info.mock.calls.some((call) => call.arguments.includes(RESTORED)), "it is restored");
    chain.mine([[ALICE, 7n]]);
    await follow(after);
    await until(() => isFollowing(after), "restored values have passed their check");
    const known = await balances(after);
    assert.deepEqual(known, ["0x7", readsBefore === 0 ? "0x1" : "0x3", ...Array.from({ length: 6 }, () => "0x1")]);
    assert.equal(await missesOf(after), misses);
  });
}

test("a process that ends while another one has the folder does not begin to save", async (t) => {
  const { start } = await createRig(t);
  const begin = t.mock.method(StateRows.prototype, "begin");
  await start();
  await until(() => begin.mock.callCount() === 1, "the first one saves");
  const { restore } = StateRows.prototype;
  const called = Promise.withResolvers<{ readonly ended: Promise<void> }>();
  t.mock.method(StateRows.prototype, "restore", function (this: StateRows, state: RestorableState) {
    const ended = restore.call(this, state);
    called.resolve({ ended });
    return ended;
  });
  const second = await start({}, { isLocked: true });
  const { ended } = await called.promise;
  await second.close();
  await ended;
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(begin.mock.callCount(), 1);
});

/** Changes a stored balance. */
const plant = (folder: string, address: Address): void =>
  changeRows(folder, (bytes) => {
    const at = bytes.indexOf(Buffer.from(address.slice(2), "hex"));
    if (at > 0) {
      bytes.writeUInt8(7, at + 51);
    }
    return at > 0;
  });

test("a wrong value in the data folder is found before it answers, and ends all restored values", async (t) => {
  const { chain, folder, start, follow, learn } = await createRig(t);
  const before = await start();
  await learn(before);
  await before.close();
  plant(folder, ALICE);
  const after = await start();
  await until(
    async () => (await metric(after.opsUrl, "forebay_state_drops_total", 'reason="difference"')) === 1,
    "found",
  );
  assert.deepEqual(
    await balances(after),
    ACCOUNTS.map(() => "0x1"),
  );
  // Its source is not suspended.
  chain.mine();
  await follow(after);
  assert.ok(await isFollowing(after));
});

for (const [what, change] of [
  [
    "damaged",
    (folder: string) => {
      const database = new DatabaseSync(join(folder, "forebay.db"));
      database.exec("UPDATE state_rows SET rows = substr(rows, 1, length(rows) - 3) || x'303030'");
      database.close();
    },
  ],
  ["removed", (folder: string) => rm(folder, { recursive: true })],
] as const) {
  test(`with rows that are ${what}, values are learned again`, async (t) => {
    const { folder, start, learn, asked } = await createRig(t);
    const before = await start();
    await learn(before);
    await before.close();
    await change(folder);
    const calls = asked();
    const after = await start();
    assert.deepEqual(
      await balances(after),
      ACCOUNTS.map(() => "0x1"),
    );
    assert.ok(asked() > calls);
    await learn(after);
    assert.equal((await balance(after, ALICE)).headers.get("cache-status"), STATE_HIT);
  });
}

test("no value is restored if a node has another URL", async (t) => {
  const { chain, start, learn } = await createRig(t);
  const first = await start();
  await learn(first);
  await first.close();
  const other = await startWorldNode(t, chain);
  const after = await start({ nodes: [{ url: other.url, name: "own" }] });
  // A read counts as a lookup once state has begun, and with it what was restored.
  await until(async () => {
    await balance(after, UNREAD);
    return (await missesOf(after)) > 0;
  }, "state has begun");
  const before = await missesOf(after);
  await balances(after);
  assert.equal((await missesOf(after)) - before, ACCOUNTS.length);
});
