import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { ZERO_HASH } from "../../src/ethereum/hex.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import { NotExecutableError } from "../../src/evm/notExecutableError.ts";
import { RpcError } from "../../src/jsonrpc/rpcError.ts";
import { runSimulation, type SimulationInput } from "../../src/simulation/runSimulation.ts";
import { readerOf } from "../support/builders/stateRoot.ts";
import { readConformanceChain } from "./conformanceChain.ts";
import { maskSimulation } from "./maskSimulation.ts";
import { vectorFolder } from "./vectorFolder.ts";

const FOLDER = join(vectorFolder, "execution-apis");
const MAX_EXCEPTIONS = 5;

interface Exchange {
  readonly request: { readonly method: string; readonly params: readonly unknown[] };
  readonly response: {
    readonly result?: unknown;
    readonly error?: { readonly code: number; readonly message: string };
  };
}

/** Reads request and response from an .io file of execution-apis. */
const readExchange = (file: string): Exchange => {
  const lines = readFileSync(file, "utf8").split("\n");
  const json = (mark: string) => JSON.parse(lines.find((line) => line.startsWith(mark))?.slice(mark.length) ?? "null");
  return { request: json(">> "), response: json("<< ") };
};

/** Differences that are correct, each by a rule. */
const EXCEPTIONS: readonly { readonly reason: string; holds(exchange: Exchange): boolean }[] = [];

type Block = Record<string, unknown>;

const chain = readConformanceChain(FOLDER);
const engine = await createEngines();
const reader = readerOf(chain.state, (number) => chain.block(number)?.hash ?? ZERO_HASH);

const answer = async (
  exchange: Exchange,
  options: Partial<SimulationInput>,
  by = engine,
): Promise<Exchange["response"]> => {
  const [, block] = exchange.request.params;
  const number = block === undefined || block === "latest" ? chain.head : BigInt(String(block));
  const parent = chain.block(number);
  // The error of the node for an unknown block.
  if (parent === undefined) {
    return { error: { code: -32000, message: "header not found" } };
  }
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

    maxResponseBytes: 16 * 1024 * 1024,
    ...options,
  };
  try {
    const text = await runSimulation(input, { engine: by, withState: (run) => run(reader) });
    return { result: JSON.parse(new TextDecoder().decode(text)) };
  } catch (error) {
    if (!(error instanceof RpcError)) {
      throw error;
    }
    return { error: { code: error.code, message: error.message } };
  }
};

const files = globSync(join(FOLDER, "tests/eth_simulateV1/*.io")).sort();

test("eth_simulateV1 vectors, profile geth: equal as JSON", async () => {
  const differing: string[] = [];
  let excepted = 0;
  for (const file of files) {
    const exchange = readExchange(file);
    const [got, want] = [maskSimulation(await answer(exchange, {})), maskSimulation(exchange.response)];
    if (isDeepStrictEqual(got, want)) {
      continue;
    }
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

test("the reference engine answers the same vectors, except those that it leaves to a node", async () => {
  const reference = await createEngines("reference");
  const differing: string[] = [];
  const forwarded: string[] = [];
  for (const file of files) {
    const exchange = readExchange(file);
    try {
      const got = maskSimulation(await answer(exchange, {}, reference));
      if (!isDeepStrictEqual(got, maskSimulation(exchange.response))) {
        differing.push(basename(file));
      }
    } catch (error) {
      assert.ok(error instanceof NotExecutableError, `${basename(file)}: ${error}`);
      forwarded.push(error.message);
    }
  }
  const reasons = new Set(forwarded);
  process.stdout.write(
    `reference: ${files.length} vectors, ${forwarded.length} forwarded: ${[...reasons].join(", ")}\n`,
  );
  assert.deepEqual(differing, []);
});

/** The fields of a simulated block (docs/methods.md, eth_simulateV1). */
const FIELDS = [
  ...[
    "number",
    "hash",
    "parentHash",
    "nonce",
    "sha3Uncles",
    "logsBloom",
    "transactionsRoot",
    "stateRoot",
    "receiptsRoot",
  ],
  ...[
    "miner",
    "difficulty",
    "mixHash",
    "extraData",
    "size",
    "gasLimit",
    "gasUsed",
    "timestamp",
    "transactions",
    "uncles",
  ],
  ...["withdrawals", "withdrawalsRoot", "baseFeePerGas", "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot"],
  ...["requestsHash", "calls"],
];
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

const entriesOf = (exchange: Exchange): readonly unknown[] => {
  const [payload] = exchange.request.params as [{ blockStateCalls: unknown[] }];
  return payload.blockStateCalls;
};

test("the same requests in the contract's profile: all fields, zero roots, one result an entry, the same calls", async () => {
  const differing: string[] = [];
  for (const file of files) {
    const exchange = readExchange(file);
    const contract = await answer(exchange, { profile: "contract", timeStep: TIME_STEP });
    if (contract.error !== undefined || exchange.response.error !== undefined) {
      assert.deepEqual(maskSimulation(contract), maskSimulation(exchange.response), basename(file));
      continue;
    }
    const blocks = contract.result as Block[];
    assert.equal(blocks.length, entriesOf(exchange).length, basename(file));
    for (const block of blocks) {
      const isOld = !("parentBeaconBlockRoot" in block);
      // Before those forks there are no such fields (one vector is based on block 1).
      if (isOld) {
        continue;
      }
      assert.deepEqual(
        FIELDS.filter((name) => !(name in block)),
        [],
        basename(file),
      );
      for (const name of ZERO_ROOTS) {
        assert.equal(block[name], ZERO_HASH, `${basename(file)} ${name}`);
      }
    }
    const geth = (await answer(exchange, {})).result as Block[];
    const asked = geth.filter(({ number }) => blocks.some((block) => block.number === number));
    const hasGaps = geth.length > blocks.length;
    const [got, want] = [onlyCalls(hidden(blocks), hasGaps), onlyCalls(hidden(asked), hasGaps)];
    if (!isDeepStrictEqual(got, want)) {
      differing.push(`${basename(file)}: ${difference(got, want)}`);
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
  for (const file of files) {
    const exchange = readExchange(file);
    const [asObject, asString] = [await answer(exchange, {}), await answer(exchange, { errorShape: "string" })];
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
