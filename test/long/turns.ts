import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { startChild } from "../bench/support/child.ts";
import { round } from "../bench/support/result.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";

/**
 * CPU time. Calls of batches and WebSockets get 8 ms of a turn. The rest is for reading, parsing and collections of garbage.
 * Up to 31 ms were seen on a quiet machine, and up to 43 ms on a busy one. The turns that this guards against took 70 to 250 ms.
 */
const MAX_TURN_MS = 55;
const CALLS_IN_WRITE = 20_000;
const FILTERS = 1_000;
const FILTER_ADDRESSES = 90;
const LOG_CALLS = 15;
/** The limits of addresses, and of topics in each of four positions. */
const FILTER_VALUES = 1_000;
const PROOF_KEYS = 70_000;
const MAX_PROOF_KEYS = 10_000;
/** Entries of an access list: refused, and the most that are accepted. */
const LIST_ENTRIES = 33_000;
const MAX_LIST_ENTRIES = 10_000;
/** Slots of eth_getStorageValues: refused, and the most that are accepted. */
const STORAGE_SLOTS = 60_000;
const MAX_STORAGE_SLOTS = 1_024;
/** Accounts of a state override with slots each: refused, and the most that are accepted. */
const OVERRIDDEN = 900;
const MAX_OVERRIDDEN = 49;
const OVERRIDDEN_SLOTS = 100;
const PASSED_KEYS = 90_000;
const ID_BYTES = 5 * 1024 * 1024 - 1_000;
const ROUNDS = 5;
/** The turn after the last response may still be long. */
const QUIET_MS = 100;

interface Client {
  readonly port: number;
  post(body: string): Promise<string>;
  /** Sends a body that is no JSON-RPC to a path that is passed through. */
  pass(body: string): Promise<string>;
}

const callOf = (method: string, params: readonly unknown[], id = 1): object => ({ jsonrpc: "2.0", id, method, params });

const addressOf = (index: number): string => `0x${index.toString(16).padStart(40, "0")}`;
const hashOf = (index: number): string => `0x${index.toString(16).padStart(64, "0")}`;
const addresses = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => addressOf(index));

/** A masked text frame whose mask is zero. RFC 6455, section 5.2. */
const frameOf = (text: string): Buffer =>
  Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);

const openSocket = async (port: number): Promise<Socket> => {
  const socket = connect(port, "127.0.0.1");
  socket.write(
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  await once(socket, "data");
  return socket;
};

/** Sends many calls in one write, and waits for their responses. */
const manyCalls = async ({ port }: Client): Promise<void> => {
  const socket = await openSocket(port);
  const frames = Array.from({ length: CALLS_IN_WRITE }, (_, id) =>
    frameOf(JSON.stringify(callOf("eth_chainId", [], id))),
  );
  let answered = 0;
  const all = new Promise<void>((resolve) => {
    socket.on("data", (bytes: Buffer) => {
      answered += bytes.toString("latin1").split('"result"').length - 1;
      if (answered >= CALLS_IN_WRITE - 5) {
        resolve();
      }
    });
  });
  socket.write(Buffer.concat(frames));
  await all;
  socket.destroy();
};

/** Creates the filters in one batch, then reads all of them in one batch. */
const manyFilters = async ({ post }: Client): Promise<void> => {
  const address = addresses(FILTER_ADDRESSES);
  const created = await post(
    JSON.stringify(Array.from({ length: FILTERS }, (_, id) => callOf("eth_newFilter", [{ address }], id))),
  );
  const ids: readonly unknown[] = JSON.parse(created).map(({ result }: { result?: unknown }) => result);
  await post(JSON.stringify(ids.map((filter, id) => callOf("eth_getFilterChanges", [filter], id))));
  await post(JSON.stringify(ids.map((filter, id) => callOf("eth_uninstallFilter", [filter], id))));
};

const fullFilters = async ({ post }: Client): Promise<void> => {
  const topic = Array.from({ length: FILTER_VALUES }, (_, index) => hashOf(index));
  const topics = [topic, topic, topic, topic];
  const filter = { fromBlock: "0x1", toBlock: "0x9", address: addresses(FILTER_VALUES), topics };
  await post(JSON.stringify(Array.from({ length: LOG_CALLS }, (_, id) => callOf("eth_getLogs", [filter], id))));
};

const proofOf =
  (keys: number) =>
  async ({ post }: Client): Promise<void> => {
    const slots = Array.from({ length: keys }, (_, index) => hashOf(index));
    await post(JSON.stringify(callOf("eth_getProof", [addressOf(1), slots, "latest"])));
  };

const FEES = { maxFeePerGas: "0x3b9aca00", maxPriorityFeePerGas: "0x1" };

const listOf =
  (method: string, entries: number) =>
  async ({ post }: Client): Promise<void> => {
    const accessList = addresses(entries).map((address) => ({ address, storageKeys: [] }));
    const transaction = { from: addressOf(1), to: addressOf(2), nonce: "0x1", gas: "0x1000000", ...FEES, accessList };
    await post(JSON.stringify(callOf(method, [transaction])));
  };

const storageOf =
  (slots: number) =>
  async ({ post }: Client): Promise<void> => {
    const keys = Array.from({ length: slots }, (_, index) => hashOf(index));
    await post(JSON.stringify(callOf("eth_getStorageValues", [{ [addressOf(1)]: keys }, "latest"])));
  };

const overridesOf =
  (accounts: number) =>
  async ({ post }: Client): Promise<void> => {
    const stateDiff = Object.fromEntries(
      Array.from({ length: OVERRIDDEN_SLOTS }, (_, slot) => [`0x${slot}`, hashOf(1)]),
    );
    const overrides = Object.fromEntries(addresses(accounts).map((address) => [address, { stateDiff }]));
    await post(JSON.stringify(callOf("eth_call", [{ to: addressOf(1) }, "latest", overrides])));
  };

/** Bodies below a pass-through path in which a parser could find a method: in many escaped keys, in one long key, between zeros. */
const passedBodies = async ({ pass }: Client): Promise<void> => {
  const key = "\\u0040".repeat(6);
  await pass(`{${`"${key}":"",`.repeat(PASSED_KEYS)}"method":"x"}`);
  await pass(`{"method${"\u0130".repeat(ID_BYTES / 2)}":""}`);
  await pass(`["method${"\0".repeat(ID_BYTES)}"]`);
};

const longId = async ({ post }: Client): Promise<void> => {
  for (const method of ["eth_getFilterChanges", "eth_getFilterLogs", "eth_uninstallFilter"]) {
    await post(JSON.stringify(callOf(method, [`0x${"a".repeat(ID_BYTES)}`])));
  }
};

const CASES: Readonly<Record<string, (client: Client) => Promise<void>>> = {
  callsInOneWrite: manyCalls,
  filters: manyFilters,
  logsWithFullFilters: fullFilters,
  proofKeys: proofOf(PROOF_KEYS),
  mostProofKeys: proofOf(MAX_PROOF_KEYS),
  longFilterId: longId,
  filledList: listOf("eth_fillTransaction", LIST_ENTRIES),
  mostFilledList: listOf("eth_fillTransaction", MAX_LIST_ENTRIES),
  calledList: listOf("eth_call", LIST_ENTRIES),
  mostCalledList: listOf("eth_call", MAX_LIST_ENTRIES),
  storageValues: storageOf(STORAGE_SLOTS),
  mostStorageValues: storageOf(MAX_STORAGE_SLOTS),
  overriddenSlots: overridesOf(OVERRIDDEN),
  mostOverriddenSlots: overridesOf(MAX_OVERRIDDEN),
  passedBodies,
};

/** Names of cases: TURNS="filters". Default: all. */
const ONLY = (process.env.TURNS ?? "").split(" ").filter((name) => name !== "");

/**
 * Measures the longest turn of the event loop while one client sends what used to hold it.
 * These are many calls in one write, filters, large `eth_getLogs`, proofs of many keys, and a long filter id. They are also large
 * access lists and overrides, reads of many slots, and bodies that are passed through. Each number is the median of the rounds after the first.
 */
export const long = async () => {
  const node = await createFakeNode();
  const server = startChild("../../long/support/turnsServer.ts", [node.url]);
  const { port }: { port: number } = Object(await server.message());
  const sendTo =
    (path: string) =>
    async (body: string): Promise<string> => {
      const headers = { "content-type": "application/json" };
      return (await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers, body })).text();
    };
  const client: Client = { port, post: sendTo("/"), pass: sendTo("/main/passed") };
  const measure = async (): Promise<{ turnMs: number; collectedMs: number }> => {
    const answer = server.message();
    server.send("measure");
    return Object(await answer);
  };
  const longest: Record<string, { turnMs: number; collectedMs: number }> = {};
  for (const [name, attack] of Object.entries(CASES).filter(([each]) => ONLY.length === 0 || ONLY.includes(each))) {
    const rounds: { turnMs: number; collectedMs: number }[] = [];
    for (let index = 0; index <= ROUNDS; index++) {
      await sleep(QUIET_MS);
      await measure();
      await attack(client);
      await sleep(QUIET_MS);
      rounds.push(await measure());
    }
    const [, ...warm] = rounds;
    const middle = warm.toSorted((a, b) => a.turnMs - b.turnMs)[Math.floor(warm.length / 2)];
    longest[name] = { turnMs: round(middle?.turnMs ?? 0, 1), collectedMs: round(middle?.collectedMs ?? 0, 1) };
  }
  await server.end();
  await node.close();
  const tooLong = Object.entries(longest).filter(([, { turnMs }]) => turnMs > MAX_TURN_MS);
  return { name: "turns", passed: tooLong.length === 0, maxTurnMs: MAX_TURN_MS, longest };
};
