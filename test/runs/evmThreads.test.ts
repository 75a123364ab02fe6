import assert from "node:assert/strict";
import { test } from "node:test";
import { workerEntry } from "../../src/app/workerEntry.ts";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import { type Address, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { keccak256Hex } from "../../src/ethereum/keccak.ts";
import type { EngineKind } from "../../src/evm/engine.ts";
import { EvmThreads } from "../../src/runs/evmThreads.ts";
import { EvmWorkers } from "../../src/runs/evmWorkers.ts";
import type { CallInput } from "../../src/simulation/callExecution.ts";
import { PARENT } from "../support/builders/parentBlock.ts";
import type { PlainAccount } from "../support/builders/stateRoot.ts";
import { plainSource } from "../support/fakes/plainSource.ts";
import { PLAIN_CHAIN } from "../support/servers/evmWorkers.ts";
import { runEcho, startEchoThreads } from "./echoThreads.ts";

test("63 chains share four threads", async (t) => {
  const { threads, most } = startEchoThreads(t);
  const chains = Array.from(
    { length: 63 },
    (_, at) => new EvmWorkers({ ...PLAIN_CHAIN, threads, chain: `chain ${at}`, size: 4 }),
  );
  const outputs = await Promise.all(chains.map((workers, at) => runEcho(workers, "echo", at)));
  assert.deepEqual(
    outputs.map(({ output }) => output),
    chains.map((_, at) => at),
  );
  assert.equal(most(), 4);
  await chains[0]?.close();
  assert.equal(chains[1]?.busy, 0);
});

test("the reserved thread of one chain takes only its runs, and ends with it", async (t) => {
  const { threads, count } = startEchoThreads(t);
  const reserved = new EvmWorkers({ ...PLAIN_CHAIN, threads, size: 1, isReserved: true });
  const others = new EvmWorkers({ ...PLAIN_CHAIN, threads, size: 1 });
  const leaving = new AbortController();
  const hanging = [0, 1].map((at) => runEcho(others, "hang", at, leaving.signal));
  assert.equal((await runEcho(reserved, "echo", 2)).output, 2);
  assert.equal(count(), 2);
  await reserved.close();
  assert.equal(count(), 1);
  leaving.abort(new Error("aborted"));
  await Promise.all(hanging.map((each) => assert.rejects(each, /aborted/)));
});

const SENDER: Address = `0x${"aa".repeat(20)}`;
const CONTRACT: Address = `0x${"bb".repeat(20)}`;

const accountOf = (code: string): PlainAccount => {
  const bytes = Uint8Array.fromHex(code);
  return { nonce: 1n, balance: 0n, code: bytes, codeHash: keccak256Hex(bytes), storage: new Map() };
};

test("chains with other engines share a thread, and no chain reads values of another", async (t) => {
  const threads = new EvmThreads({ entry: workerEntry("evm") });
  t.after(() => threads.close());
  const call = async (chain: string, byte: string, engine: EngineKind) => {
    const workers = new EvmWorkers({ ...PLAIN_CHAIN, threads, chain, engine, size: 1 });
    // Both states have the same identifier. The code returns the byte.
    const source = plainSource("state", new Map([[CONTRACT, accountOf(`60${byte}60005260206000f3`)]]));
    const input: CallInput = {
      paramsText: new TextEncoder().encode(JSON.stringify([{ from: SENDER, to: CONTRACT }, "latest"])),
      block: { ...PARENT, hash: ZERO_HASH },
      forks: fixedForks(1n, "prague"),
      gasCap: 50_000_000n,
    };
    const { signal } = new AbortController();
    return (await workers.run({ name: "call", input, source, nativeContracts: [], timeoutMs: 30_000, signal })).output;
  };
  assert.equal(await call("one", "01", "fast"), `0x${"1".padStart(64, "0")}`);
  assert.equal(await call("two", "02", "reference"), `0x${"2".padStart(64, "0")}`);
  assert.equal(await call("three", "03", "fast"), `0x${"3".padStart(64, "0")}`);
});
