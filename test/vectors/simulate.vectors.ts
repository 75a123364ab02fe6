import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { ZERO_HASH } from "../../src/chain/hex.ts";
import { createEngines } from "../../src/evm/referenceEngine.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { runSimulation, type SimulationInput } from "../../src/simulate/runSimulation.ts";
import { readConformanceChain } from "../support/conformanceChain.ts";
import { readerOf } from "../support/stateRoot.ts";
import { type Exchange, readExchange } from "../support/vectorFile.ts";

const VECTORS = process.env.VECTORS ?? join(import.meta.dirname, "../../../shared/vectors");
const FOLDER = join(VECTORS, "execution-apis");
const MAX_EXCEPTIONS = 5;

/** Answers that differ and are not wrong, each by a rule. */
const EXCEPTIONS: readonly { readonly reason: string; holds(exchange: Exchange): boolean }[] = [];

type Block = Record<string, unknown>;

const chain = readConformanceChain(FOLDER);
const engine = createEngines();
const reader = readerOf(chain.state, (number) => chain.block(number)?.hash ?? ZERO_HASH);

const answer = async (exchange: Exchange, options: Partial<SimulationInput>): Promise<Exchange["response"]> => {
  const [, block] = exchange.request.params;
  const number = block === undefined || block === "latest" ? chain.head : BigInt(String(block));
  const parent = chain.block(number);
  // What the node says where it has no such block.
  if (parent === undefined) return { error: { code: -32000, message: "header not found" } };
  const input: SimulationInput = {
    paramsText: new TextEncoder().encode(JSON.stringify(exchange.request.params)),
    parent,
    forks: chain.forks,
    profile: "geth",
    errorShape: "object",
    timeStep: 12n,
    maxBlocks: 256,
    maxCalls: 5_000,
    gasCap: 50_000_000n,
    ...options,
  };
  try {
    const text = await runSimulation(input, { engine, onState: (run) => run(reader) });
    return { result: JSON.parse(new TextDecoder().decode(text)) };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    return { error: { code: error.code, message: error.message } };
  }
};

/** A simulated block's hash follows from its state root, which cannot be known: wherever it stands, its number stands instead. */
const masked = ({ result, error }: Exchange["response"]): unknown => {
  if (error !== undefined) return { code: error.code, message: error.message };
  let text = JSON.stringify(result);
  for (const { hash, number } of result as Block[]) text = text.replaceAll(String(hash).slice(2), `hash of ${number}`);
  return (JSON.parse(text) as Block[]).map((block) => ({ ...block, stateRoot: "masked" }));
};

const files = globSync(join(FOLDER, "tests/eth_simulateV1/*.io")).sort();

test("eth_simulateV1 vectors, profile geth: equal as JSON", async () => {
  const differing: string[] = [];
  let excepted = 0;
  for (const file of files) {
    const exchange = readExchange(file);
    const [got, want] = [masked(await answer(exchange, {})), masked(exchange.response)];
    if (isDeepStrictEqual(got, want)) continue;
    const exception = EXCEPTIONS.find((rule) => rule.holds(exchange));
    if (exception !== undefined) {
      excepted++;
      process.stdout.write(`excepted: ${basename(file)} (${exception.reason})\n`);
      continue;
    }
    differing.push(basename(file));
    process.stdout.write(`differs: ${basename(file)}: ${difference(got, want)}\n`);
  }
  process.stdout.write(`eth_simulateV1: ${files.length} vectors, ${differing.length} differ, ${excepted} excepted\n`);
  assert.deepEqual(differing, []);
  assert.ok(excepted <= MAX_EXCEPTIONS);
});

const difference = (got: unknown, want: unknown, place = ""): string => {
  if (isDeepStrictEqual(got, want)) return "";
  if (typeof got !== "object" || typeof want !== "object" || got === null || want === null) {
    return `${place} is ${JSON.stringify(got)}, not ${JSON.stringify(want)}; `;
  }
  const keys = new Set([...Object.keys(got), ...Object.keys(want)]);
  const at = (value: object, key: string): unknown => Reflect.get(value, key);
  return [...keys].map((key) => difference(at(got, key), at(want, key), `${place}/${key}`)).join("");
};
