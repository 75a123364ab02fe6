import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { HeaderFields } from "../../src/core/heads.ts";
import { fixedForks } from "../../src/ethereum/chainForks.ts";
import { formatData, type Hex, parseData } from "../../src/ethereum/hex.ts";
import { rulesAt } from "../../src/ethereum/rules.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { TransactionResult } from "../../src/evm/engine.ts";
import { CachedState } from "../../src/evm/reads/cachedState.ts";
import { parseBaseBlock } from "../../src/simulation/simulatedHeader.ts";
import { startAnvil } from "../devnet/anvil.ts";
import { createCallWorld, type PlainCall } from "../support/builders/callWorld.ts";
import { completeOne } from "../support/builders/completedRun.ts";
import { createNodeState } from "../support/builders/nodeState.ts";
import { createMessage } from "../support/builders/plainCall.ts";
import { createRandom } from "../support/builders/randomValues.ts";

const CALLS = 500;
const SEED = 20_261_120;
const GAS = 3_000_000n;
const CHAIN_ID = 31_337n;

const anvil = await startAnvil(["--hardfork", "osaka", "--no-mining"]);
after(() => anvil.close());

const world = await createCallWorld(anvil, "osaka");
const block = parseBaseBlock((await anvil.call("eth_getBlockByNumber", "latest", false)) as HeaderFields);
const engine = (await createEngines())(rulesAt(fixedForks(CHAIN_ID, "osaka"), block.number, block.timestamp));
const nodeState = createNodeState({
  maxBytes: 64 * 1024 * 1024,
  fetch: async (calls) => {
    const batch = calls.map(({ method, params }, id) => ({ jsonrpc: "2.0", id, method, params }));
    const answers: { id: number; result?: unknown; error?: { message: string } }[] = JSON.parse(
      await anvil.post(JSON.stringify(batch)),
    );
    const sorted = answers.toSorted((a, b) => a.id - b.id);
    return { outcomes: sorted.map(({ result, error }) => (error === undefined ? result : new Error(error.message))) };
  },
});
const source = nodeState.at(block);
const known = new CachedState({ codes: new Map(), isNative: () => false });

const run = async (call: PlainCall): Promise<TransactionResult> => {
  const { result } = await completeOne(
    engine,
    (reader) =>
      engine.transact(
        {
          state: engine.createState(reader),
          block: {
            number: block.number,
            timestamp: block.timestamp,
            coinbase: block.miner,
            gasLimit: block.gasLimit,
            // Unlike geth, anvil shows the base fee to a call without a price.
            baseFee: block.baseFeePerGas ?? 0n,
            prevRandao: block.mixHash,
            blobBaseFee: 1n,
            blockHash: (number) => (number === block.number ? block.hash : reader.blockHash(number)),
          },
        },
        createMessage({
          ...{ from: call.from, to: call.to, gas: GAS },
          ...{ value: BigInt(call.value), input: parseData(call.data) },
        }),
        { checks: { nonce: false, sender: false, freeGas: true } },
      ),
    { known, fetch: (keys) => source.read(keys, new AbortController().signal) },
  );
  return result;
};

interface Trace {
  readonly gasUsed: Hex;
  readonly output?: Hex;
  readonly error?: string;
}

test(`${CALLS} random calls over ${world.contracts} contracts: success, return data and gas are those of anvil`, async () => {
  const random = createRandom(SEED);
  const calls = Array.from({ length: CALLS }, () => ({
    ...world.randomCall(random),
    gas: `0x${GAS.toString(16)}` as const,
  }));
  const traces = (await anvil.callAll(
    "debug_traceCall",
    calls.map((call) => [call, "latest", { tracer: "callTracer" }]),
  )) as Trace[];
  const counts = new Map<string, number>();
  const differing: string[] = [];
  for (const [at, call] of calls.entries()) {
    const trace = traces[at];
    if (trace === undefined) {
      throw new Error("no trace");
    }
    const ours = await run(call);
    const got = { isSuccess: ours.status === "success", output: formatData(ours.returnData), gasUsed: ours.gasUsed };
    const want = { isSuccess: trace.error === undefined, output: trace.output ?? "0x", gasUsed: BigInt(trace.gasUsed) };
    counts.set(ours.status, (counts.get(ours.status) ?? 0) + 1);
    const isEqual = got.isSuccess === want.isSuccess && got.output === want.output && got.gasUsed === want.gasUsed;
    if (!isEqual) {
      const difference = {
        got: { ...got, gasUsed: `${got.gasUsed}`, halt: ours.halt },
        want: { ...want, gasUsed: `${want.gasUsed}`, error: trace.error },
      };
      differing.push(`${JSON.stringify(call).slice(0, 400)} ${JSON.stringify(difference)}`);
    }
  }
  assert.deepEqual(differing, []);
  // Calls that all fail would verify little.
  assert.ok((counts.get("success") ?? 0) > CALLS / 4, JSON.stringify(Object.fromEntries(counts)));
});
