import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { ZERO_HASH } from "../../src/ethereum/hex.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import { NotExecutableError } from "../../src/evm/executionErrors.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { runSimulation, type SimulationInput } from "../../src/simulation/runSimulation.ts";
import { knownContext } from "../support/builders/completedRun.ts";
import { readerOf } from "../support/builders/stateRoot.ts";
import { readConformanceChain } from "./conformanceChain.ts";
import { maskSimulation } from "./maskSimulation.ts";
import { type Request, readVectors } from "./vectorFolder.ts";

type Block = Record<string, unknown>;

const chain = readConformanceChain();
const engine = await createEngines();
const reader = readerOf(chain.state, (number) => chain.block(number)?.hash ?? ZERO_HASH);

const answer = async ({ params = [] }: Request, options: Partial<SimulationInput>, by = engine): Promise<Response> => {
  const [, block] = params;
  const number = block === undefined || block === "latest" ? chain.head : BigInt(String(block));
  const parent = chain.block(number);
  // The error of the node for an unknown block.
  if (parent === undefined) {
    return { error: { code: -32000, message: "header not found" } };
  }
  const input: SimulationInput = {
    paramsText: new TextEncoder().encode(JSON.stringify(params)),
    parent,
    forks: chain.forks,
    profile: "geth",
    errorShape: "object",
    timeStep: 12n,
    maxBlocks: 256,
    maxCalls: 5_000,
    gasCap: 50_000_000n,

    maxResponseBytes: 16 * 1024 * 1024,
    ...options,
  };
  try {
    const text = await runSimulation(input, knownContext(by, reader));
    return { result: JSON.parse(new TextDecoder().decode(text)) };
  } catch (error) {
    if (!(error instanceof RpcError)) {
      throw error;
    }
    return { error: { code: error.code, message: error.message } };
  }
};

type Response = {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
};

const vectors = readVectors()
  .filter(({ method }) => method === "eth_simulateV1")
  .flatMap(({ name, exchanges }) => exchanges.map(({ request, response }) => ({ name, request, response })));

test("eth_simulateV1 vectors, profile geth: equal as JSON", async () => {
  const differing: string[] = [];
  for (const { name, request, response } of vectors) {
    const [got, want] = [maskSimulation(await answer(request, {})), maskSimulation(response)];
    if (!isDeepStrictEqual(got, want)) {
      differing.push(name);
      process.stdout.write(`differs: ${name}: ${difference(got, want)}\n`);
    }
  }
  process.stdout.write(`eth_simulateV1: ${vectors.length} vectors, ${differing.length} differ\n`);
  assert.deepEqual(differing, []);
});

test("the reference engine answers the same vectors, except those that it leaves to a node", async () => {
  const reference = await createEngines("reference");
  const differing: string[] = [];
  const forwarded: string[] = [];
  for (const { name, request, response } of vectors) {
    try {
      const got = maskSimulation(await answer(request, {}, reference));
      if (!isDeepStrictEqual(got, maskSimulation(response))) {
        differing.push(name);
      }
    } catch (error) {
      assert.ok(error instanceof NotExecutableError, `${name}: ${error}`);
      forwarded.push(error.message);
    }
  }
  const reasons = new Set(forwarded);
  process.stdout.write(
    `reference: ${vectors.length} vectors, ${forwarded.length} forwarded: ${[...reasons].join(", ")}\n`,
  );
  assert.deepEqual(differing, []);
});

/** The fields of a simulated block (docs/methods.md, eth_simulateV1). */
const FIELDS = [
  "number hash parentHash nonce sha3Uncles logsBloom transactionsRoot stateRoot receiptsRoot miner difficulty mixHash",
  "extraData size gasLimit gasUsed timestamp transactions uncles withdrawals withdrawalsRoot baseFeePerGas blobGasUsed",
  "excessBlobGas parentBeaconBlockRoot requestsHash calls",
].flatMap((line) => line.split(" "));
const ZERO_ROOTS = ["stateRoot", "withdrawalsRoot", "mixHash"];

/** One time step for both profiles, because contracts can read the time. */
const TIME_STEP = 12n;

/**
 * Headers and hashes differ between the profiles. `hidden` masks hashes of blocks in the result. A block in a gap is not in the
 * result, but a contract may return its hash (BLOCKHASH).
 */
const onlyCalls = (blocks: readonly Block[], hasGaps: boolean): unknown =>
  blocks.map(({ calls }) =>
    JSON.parse(JSON.stringify(calls, (key, value) => (hasGaps && key === "returnData" ? undefined : value))),
  );

const entriesOf = ({ params }: Request): readonly unknown[] => {
  const [payload] = params as [{ blockStateCalls: unknown[] }];
  return payload.blockStateCalls;
};

test("the same requests in the contract's profile: all fields, zero roots, one result an entry, the same calls", async () => {
  const differing: string[] = [];
  for (const { name, request, response } of vectors) {
    const contract = await answer(request, { profile: "contract", timeStep: TIME_STEP });
    if (contract.error !== undefined || response.error !== undefined) {
      assert.deepEqual(maskSimulation(contract), maskSimulation(response), name);
      continue;
    }
    const blocks = contract.result as Block[];
    assert.equal(blocks.length, entriesOf(request).length, name);
    for (const block of blocks) {
      const isOld = !("parentBeaconBlockRoot" in block);
      // Before those forks there are no such fields (one vector is based on block 1).
      if (isOld) {
        continue;
      }
      assert.deepEqual(
        FIELDS.filter((field) => !(field in block)),
        [],
        name,
      );
      for (const root of ZERO_ROOTS) {
        assert.equal(block[root], ZERO_HASH, `${name} ${root}`);
      }
    }
    const geth = (await answer(request, {})).result as Block[];
    const asked = geth.filter(({ number }) => blocks.some((block) => block.number === number));
    const hasGaps = geth.length > blocks.length;
    const [got, want] = [onlyCalls(hidden(blocks), hasGaps), onlyCalls(hidden(asked), hasGaps)];
    if (!isDeepStrictEqual(got, want)) {
      differing.push(`${name}: ${difference(got, want)}`);
    }
  }
  assert.deepEqual(differing, []);
});

/** Collects the hashes of simulated blocks, in any field. */
const hidden = (blocks: readonly Block[]): Block[] => {
  let text = JSON.stringify(blocks);
  for (const { hash, number } of blocks) {
    text = text.replaceAll(String(hash).slice(2), `hash of ${number}`);
  }
  return JSON.parse(text);
};

test("the contract's shape of an error: the reason alone, the bytes in returnData", async () => {
  let reverts = 0;
  for (const { request } of vectors) {
    const [asObject, asString] = [await answer(request, {}), await answer(request, { errorShape: "string" })];
    if (asObject.error !== undefined) {
      assert.deepEqual(asString, asObject);
      continue;
    }
    const calls = (blocks: unknown) => (blocks as Block[]).flatMap((block) => block.calls as Call[]);
    for (const [at, call] of calls(asString.result).entries()) {
      const error = calls(asObject.result)[at]?.error as { message: string; data?: string } | undefined;
      if (error === undefined) {
        continue;
      }
      reverts++;
      assert.equal(typeof call.error, "string");
      assert.equal(error.message.replace("execution reverted: ", ""), call.error);
      assert.equal(call.returnData, error.data ?? "0x");
    }
  }
  assert.ok(reverts > 0);
});

interface Call {
  readonly error?: unknown;
  readonly returnData: string;
}

const difference = (got: unknown, want: unknown, place = ""): string => {
  if (isDeepStrictEqual(got, want)) {
    return "";
  }
  if (typeof got !== "object" || typeof want !== "object" || got === null || want === null) {
    return `${place} is ${JSON.stringify(got)}, not ${JSON.stringify(want)}; `;
  }
  const keys = new Set([...Object.keys(got), ...Object.keys(want)]);
  const at = (value: object, key: string): unknown => Reflect.get(value, key);
  return [...keys].map((key) => difference(at(got, key), at(want, key), `${place}/${key}`)).join("");
};
