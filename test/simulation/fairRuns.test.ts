import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { StateSource } from "../../src/core/stateReader.ts";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import type { Address } from "../../src/ethereum/hex.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { createSimulator, type ExecutionScope } from "../../src/simulation/simulator.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import { createContext } from "../support/builders/request.ts";
import { plainSource } from "../support/fakes/plainSource.ts";
import { SIMULATOR_OPTIONS } from "../support/fakes/simulationRig.ts";
import { readyWorkers } from "../support/servers/evmWorkers.ts";

const CODE: Address = `0x${"dd".repeat(20)}`;
/** Jumps to itself. */
const LOOP = "0x5b600056";
/** Calls the identity precompile with 3 MB in a loop: few opcodes, and much work in each. */
const SLOW_PRECOMPILE = "0x5b600080623000008160045afa50600056";

const paramsOf = (code: string): Uint8Array => {
  const calls = [{ to: CODE }];
  const blockOverrides = { gasLimit: "0xfffffffffffff" };
  const stateOverrides = { [CODE]: { code } };
  return new TextEncoder().encode(
    JSON.stringify([{ blockStateCalls: [{ blockOverrides, stateOverrides, calls }] }, "latest"]),
  );
};

/** One thread, and the number of threads that were started. */
const start = async (t: TestContext, timeoutMs: number) => {
  const changes: number[] = [];
  const workers = await readyWorkers({ onThreads: (threads) => changes.push(threads) });
  t.after(() => workers.close());
  const simulator = createSimulator({
    ...SIMULATOR_OPTIONS,
    workers,
    forks: () => fixedForks(1n, "prague"),
    nativesAt: () => [],
    gasCap: 2n ** 60n,
    timeoutMs,
  });
  let states = 0;
  const run = async (code: string, scope: ExecutionScope, read?: StateSource["read"]): Promise<string> => {
    states++;
    const source = plainSource(`state${states}`, new Map());
    const base = { block: PARENT, source: read === undefined ? source : { id: source.id, read } };
    const { body } = await simulator.simulate(paramsOf(code), base, scope);
    return new TextDecoder().decode(body as Uint8Array);
  };
  return { run, threadsStarted: () => changes.length };
};

test("70 endless loops of one client take the place of no other client, whose run is next", async (t) => {
  const { run } = await start(t, 1_000);
  const connection = {};
  const settled: string[] = [];
  const loops = Array.from({ length: 70 }, () =>
    run(LOOP, createContext({ clientId: "greedy", connection })).catch((error: unknown) => {
      assert.ok(error instanceof RpcError);
      settled.push(error.status === 503 ? "busy" : "deadline");
    }),
  );
  const other = async (): Promise<void> => {
    await run("0x00", createContext({ clientId: "other", connection: {} }));
    settled.push("other");
  };
  await other();
  // One loop runs and 64 wait. The sixth rejected one made room for the other client.
  assert.deepEqual(settled, [...Array.from({ length: 6 }, () => "busy"), "deadline", "other"]);
  await other();
  // Loops that waited for their whole limit are busy too.
  const ran = settled.slice(8).filter((outcome) => outcome !== "busy");
  assert.deepEqual(ran, ["deadline", "other"]);
  await Promise.all(loops);
});

test("clients that disconnect cost no thread, whatever their run is doing", async (t) => {
  const { run, threadsStarted } = await start(t, 30_000);
  await run("0x00", createContext());
  for (const code of [LOOP, SLOW_PRECOMPILE, LOOP, SLOW_PRECOMPILE, LOOP]) {
    const leaving = new AbortController();
    const left = run(code, createContext({ signal: leaving.signal, clientId: "leaver" }));
    const next = run("0x00", createContext({ clientId: "other" }));
    leaving.abort(new Error("disconnected"));
    await assert.rejects(left, /disconnected/);
    assert.match(await next, /"status":"0x1"/);
  }
  assert.equal(threadsStarted(), 1);
});

test("a run that waits for state when its client disconnects costs no thread", async (t) => {
  const { run, threadsStarted } = await start(t, 30_000);
  await run("0x00", createContext());
  const leaving = new AbortController();
  const asked = Promise.withResolvers<void>();
  const left = run("0x00", createContext({ signal: leaving.signal }), () => {
    asked.resolve();
    return new Promise(() => {});
  });
  await asked.promise;
  leaving.abort(new Error("disconnected"));
  await assert.rejects(left, /disconnected/);
  assert.match(await run("0x00", createContext()), /"status":"0x1"/);
  assert.equal(threadsStarted(), 1);
});
