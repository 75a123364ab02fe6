import assert from "node:assert/strict";
import { test } from "node:test";
import { deserialize, serialize } from "node:v8";
import type { MainFunctions, ServingFunctions } from "../../src/cluster/chainProtocol.ts";
import { type ChainKnownState, HostedState } from "../../src/cluster/hostedState.ts";
import { RemoteState } from "../../src/cluster/remoteState.ts";
import type { Proof, RpcResponse } from "../../src/core/rpcSource.ts";
import type { Address } from "../../src/ethereum/hex.ts";
import type { Awaitable } from "../../src/jsonrpc/call.ts";
import { Channel } from "../../src/threads/channel.ts";
import { createContext, createResponse } from "../support/builders/request.ts";
import { until } from "../support/clients/until.ts";
import { createFakeHeads } from "../support/fakes/fakeHeads.ts";

type Ask = () => Awaitable<RpcResponse>;

const ADDRESS: Address = "0x00000000000000000000000000000000000a11ce";
const CALL_KEY = '["eth_call",[{"to":"0x00000000000000000000000000000000000b0b00"}]]';
const balanceOf = (address: Address) => ({ field: "balance", address, slot: undefined }) as const;
const textOf = ({ body }: RpcResponse): string => Buffer.from(body as Uint8Array).toString();

/** The answers that the main process knows, by the address of a balance or the text of a call. */
const createKnown = () => {
  const bodies = new Map<string, RpcResponse["body"]>();
  const proofs = new Map<string, Proof>();
  const log: string[] = [];
  const request = (name: string, clientId: string, ask: Ask): Awaitable<RpcResponse> => {
    log.push(`${clientId} reads ${name}`);
    const body = bodies.get(name);
    if (body !== undefined) {
      return { body, status: { hit: "state" }, proof: proofs.get(name) };
    }
    return Promise.resolve(ask()).then(
      (response) => {
        bodies.set(name, response.body);
        log.push(`entered ${name} of ${response.node}`);
        return response;
      },
      (error: Error) => {
        log.push(`not entered: ${error.message}`);
        throw error;
      },
    );
  };
  const known: Pick<ChainKnownState, "reads" | "callCache"> = {
    reads: {
      request: ({ key, context }, ask) => request(key.address, context.caller.clientId, ask),
      findProven: async ({ key: { address: name }, context }) => {
        log.push(`${context.caller.clientId} wants a proven ${name}`);
        const [body, proof] = [bodies.get(name), proofs.get(name)];
        return body && proof === "proven" ? { body, status: { hit: "state" }, proof } : undefined;
      },
      beginProof: () => (values, block) => {
        log.push(`proven at ${block.number}: ${values.map(([{ field }, value]) => `${field} ${value}`).join()}`);
      },
      forget: () => bodies.clear(),
    },
    callCache: { request: ({ key, context }, ask) => request(key, context.caller.clientId, ask) },
  };
  return { known, log, proofs };
};

/** Creates the channels between a serving process and the main process. `sends` counts what the serving process sends. */
const createChannelPair = () => {
  const sends = { toMain: 0 };
  const fail = (error: unknown): never => {
    throw error;
  };
  const serving: Channel<MainFunctions, ServingFunctions> = new Channel({
    post: (messages) => {
      sends.toMain++;
      const received: unknown = deserialize(serialize(messages));
      setImmediate(() => main.receive(received));
    },
    onError: fail,
  });
  const main: Channel<ServingFunctions, MainFunctions> = new Channel({
    post: (messages) => {
      const received: unknown = deserialize(serialize(messages));
      setImmediate(() => serving.receive(received));
    },
    onError: fail,
  });
  return { serving, main, sends };
};

/** `callCache`: of the main process. Default: it knows what has entered. */
const createRig = (callCache?: ChainKnownState["callCache"]) => {
  const heads = createFakeHeads(100n);
  const { serving, main, sends } = createChannelPair();
  const { known, log, proofs } = createKnown();
  const hosted = new HostedState({ ...known, ...(callCache && { callCache }) }, heads);
  const hits: string[] = [];
  const state = new RemoteState({
    ...{ chain: "chain", main: serving, maxReadable: () => 256 },
    onHit: (method) => hits.push(method),
  });
  main.offer({
    readState: (body) => hosted.read(body),
    answerCall: (body) => hosted.call(body),
    enterState: ({ asked, response }) => hosted.enter(asked, response),
    enterProof: (body) => hosted.enterProof(body),
    forgetState: () => known.reads?.forget(),
  });
  serving.offer({ dropState: () => state.drop(), ping: () => undefined });
  const node = { asked: 0, respond: (): Awaitable<RpcResponse> => createResponse('"0x7"') };
  const ask = (): Awaitable<RpcResponse> => {
    node.asked++;
    return node.respond();
  };
  const context = () => createContext({ heads: heads.current(), clientId: "alice" });
  /** Reads the balance of an account at the served head, or at another block. */
  const balance = async (block = heads.current().latest, address = ADDRESS): Promise<RpcResponse> =>
    state.reads.request({ method: "eth_getBalance", key: balanceOf(address), block, context: context() }, ask);
  const proven = (options: { readonly bypassCache?: boolean; readonly noCache?: boolean } = {}) =>
    state.reads.findProven({
      ...{ method: "eth_getBalance", key: balanceOf(ADDRESS), block: heads.current().latest },
      context: createContext({ heads: heads.current(), clientId: "alice", ...options }),
    });
  const call = async (key = CALL_KEY): Promise<RpcResponse> => {
    const block = heads.current().latest;
    return state.callCache.request({ method: "eth_call", key, block, context: context() }, ask);
  };
  return { heads, main, sends, log, proofs, hits, state, node, balance, proven, call };
};

/** Waits until the main process has logged a line. */
const logged = (log: readonly string[], line: string): Promise<void> => until(() => log.includes(line), line);

test("the response of a node enters the main process, and answers requests at later blocks", async () => {
  const { heads, balance, call, log, node } = createRig();
  assert.equal((await balance()).status.hit, undefined);
  assert.equal((await call()).status.hit, undefined);
  await logged(log, `entered ${ADDRESS} of node1`);
  await logged(log, `entered ${CALL_KEY} of node1`);
  assert.equal(log[0], `alice reads ${ADDRESS}`, "the main process counts the client");
  heads.move({ number: 101n });
  for (const response of [await balance(), await call()]) {
    assert.deepEqual(response.status, { hit: "state" });
    assert.equal(textOf(response), '"0x7"');
  }
  assert.equal(node.asked, 2);
});

test("an answer of the main process answers equal requests at its block, and no others", async () => {
  const { heads, balance, log, hits, node } = createRig();
  const reads = () => log.filter((line) => line.includes("reads")).length;
  await balance();
  await logged(log, `entered ${ADDRESS} of node1`);
  await balance();
  await balance();
  assert.equal(reads(), 2);
  assert.deepEqual(hits, ["eth_getBalance"]);
  heads.move({ number: 101n });
  await balance();
  assert.equal(reads(), 3, "the main process is asked at the next block");
  await balance(heads.current().latest, "0x00000000000000000000000000000000000b0b00");
  assert.equal(node.asked, 2, "another account is another value");
});

test("the main process drops what it knew: no answer of before is given, also not one on its way", async () => {
  const { balance, log, main, state, node } = createRig();
  await balance();
  await logged(log, `entered ${ADDRESS} of node1`);
  assert.equal((await balance()).status.hit, "state");
  const before = balance();
  state.reads.forget();
  await before;
  node.respond = () => createResponse('"0x8"');
  assert.equal(textOf(await balance()), '"0x8"');
  assert.equal(node.asked, 2);
  await until(async () => (await balance()).status.hit === "state", "the new value is known");
  main.notify("dropState", { chain: "chain" });
  const reads = log.length;
  await until(async () => {
    await balance();
    return log.length > reads;
  }, "the main process is asked again");
});

test("a block that the main process does not have is read from a node, and nothing enters", async () => {
  const { balance, log, heads } = createRig();
  const orphan = { ...heads.current().latest, hash: `0x${"e".repeat(64)}` } as const;
  assert.equal((await balance(orphan)).status.hit, undefined);
  assert.deepEqual(log, []);
});

test("an error of a node reaches the client and the main process, and nothing enters", async () => {
  const { balance, log, node } = createRig();
  node.respond = () => Promise.reject(new Error("the node failed"));
  await assert.rejects(balance(), /the node failed/);
  await logged(log, "not entered: no response of a node came");
});

test("the requests of one turn of the event loop are one message", async () => {
  const { balance, heads, sends, log } = createRig();
  const addresses = Array.from({ length: 50 }, (_, index) => `0x${String(index).padStart(40, "0")}` as const);
  await Promise.all(addresses.map((address) => balance(heads.current().latest, address)));
  await until(() => log.filter((line) => line.startsWith("entered")).length === 50, "all responses enter");
  assert.equal(sends.toMain, 2);
});

test("a call that is too large to be learned goes to a node, and not to the main process", async () => {
  const { call, sends, node } = createRig();
  const key = `["eth_call",[{"data":"0x${"0".repeat(65_536)}"}]]`;
  assert.equal(textOf(await call(key)), '"0x7"');
  assert.equal(node.asked, 1);
  assert.equal(sends.toMain, 0);
});

test("an answer of the main process has its proof and its block, also when it answers later requests", async () => {
  const { heads, balance, call, log, proofs, node } = createRig();
  assert.equal((await balance()).proof, undefined);
  await call();
  await logged(log, `entered ${ADDRESS} of node1`);
  await logged(log, `entered ${CALL_KEY} of node1`);
  assert.equal((await balance()).proof, undefined, "the word of a node");
  proofs.set(ADDRESS, "proven");
  proofs.set(CALL_KEY, "checked");
  heads.move({ number: 101n });
  const block = heads.current().latest;
  for (const turn of ["of the main process", "again"]) {
    const [value, answer] = [await balance(), await call()];
    assert.deepEqual([value.proof, value.block], ["proven", block], turn);
    assert.deepEqual([answer.proof, answer.block], ["checked", block], turn);
  }
  assert.equal(node.asked, 2);
});

test("the response that a node gave to another serving process is no answer of the main process", async () => {
  const { call, node, hits } = createRig({ request: async () => createResponse('"0x9"') });
  for (let turn = 1; turn <= 2; turn++) {
    const response = await call();
    assert.deepEqual([textOf(response), response.status.hit, node.asked], ['"0x7"', undefined, turn]);
  }
  assert.deepEqual(hits, []);
});

test("a value that must be proven is found if the main process has proven it, and no node is asked", async () => {
  const { heads, balance, proven, log, proofs, hits, node, sends } = createRig();
  assert.equal(await proven(), undefined, "nothing is known");
  await balance();
  await logged(log, `entered ${ADDRESS} of node1`);
  await balance();
  assert.equal(await proven(), undefined, "it is known, and not proven");
  proofs.set(ADDRESS, "proven");
  const found = await proven();
  assert.ok(found !== undefined);
  assert.deepEqual([textOf(found), found.proof, found.block], ['"0x7"', "proven", heads.current().latest]);
  const before = sends.toMain;
  assert.deepEqual(await proven(), found);
  assert.equal((await balance()).proof, "proven");
  assert.equal(sends.toMain, before, "it is known here");
  assert.deepEqual(hits, ["eth_getBalance", "eth_getBalance"]);
  assert.equal(await proven({ bypassCache: true }), undefined);
  assert.equal(await proven({ noCache: true }), undefined);
  assert.equal(sends.toMain, before);
  assert.equal(node.asked, 1);
  heads.move({ number: 101n });
  assert.equal((await proven())?.proof, "proven");
  assert.equal(log.filter((line) => line === `alice wants a proven ${ADDRESS}`).length, 4);
});

test("the values of a proof enter the main process, unless it dropped what it knew since the proof was requested", async () => {
  const { heads, state, log, main } = createRig();
  const block = heads.current().latest;
  const enterOf = (value: string) => {
    const enter = state.reads.beginProof();
    return () => enter([[balanceOf(ADDRESS), value]], block);
  };
  const before = enterOf("1");
  enterOf("2")();
  await logged(log, "proven at 100: balance 2");
  main.notify("dropState", { chain: "chain" });
  await main.call("ping", null);
  before();
  enterOf("3")();
  await logged(log, "proven at 100: balance 3");
  assert.deepEqual(log, ["proven at 100: balance 2", "proven at 100: balance 3"]);
});
