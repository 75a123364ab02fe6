import assert from "node:assert/strict";
import { test } from "node:test";
import type { HeaderFields } from "../../src/core/heads.ts";
import { formatData, formatQuantity, type Hex, ZERO_HASH } from "../../src/ethereum/hex.ts";
import type { Rules } from "../../src/ethereum/rules.ts";
import { createEngines } from "../../src/evm/createEngines.ts";
import type { BlockEnvironment, TransactionResult } from "../../src/evm/engine.ts";
import type { TransactionMessage } from "../../src/evm/transactionMessage.ts";
import { parseBaseBlock } from "../../src/simulation/simulatedHeader.ts";
import { type Anvil, startAnvil } from "../devnet/anvil.ts";
import { randomCase } from "../fuzz/evm/randomWorld.ts";
import { createRandom } from "../support/builders/randomValues.ts";
import { type PlainState, readerOf } from "../support/builders/stateRoot.ts";

/**
 * Random programs, with the results of anvil as expected values.
 * The version 1.7 of anvil executes all forks of the OP stack with the rules of Prague. It has neither Karst nor Amsterdam.
 */
const CASES = 25;
const SEED = 20_261_122;
const CHAIN_ID = 31_337n;
const EXTRA_GAS = 100_000n;
const CHECKS = { nonce: false, sender: false, freeGas: false };

const FORKS: readonly (readonly [args: readonly string[], rules: Rules])[] = [
  [["--hardfork", "cancun"], { chainId: CHAIN_ID, fork: "cancun" }],
  [["--hardfork", "prague"], { chainId: CHAIN_ID, fork: "prague" }],
  [["--hardfork", "osaka"], { chainId: CHAIN_ID, fork: "osaka" }],
  [["--network", "optimism", "--hardfork", "isthmus"], { chainId: CHAIN_ID, fork: "prague", op: "isthmus" }],
  [["--network", "optimism", "--hardfork", "jovian"], { chainId: CHAIN_ID, fork: "prague", op: "jovian" }],
];

const engines = await createEngines("fast");

const writeState = async (anvil: Anvil, state: PlainState): Promise<void> => {
  const accounts = [...state];
  const slots = accounts.flatMap(([address, { storage }]) =>
    [...storage].map(([slot, value]) => [address, slot, `0x${formatData(value).slice(2).padStart(64, "0")}`]),
  );
  await Promise.all([
    anvil.callAll(
      "anvil_setBalance",
      accounts.map(([address, { balance }]) => [address, formatQuantity(balance)]),
    ),
    anvil.callAll(
      "anvil_setNonce",
      accounts.map(([address, { nonce }]) => [address, formatQuantity(nonce)]),
    ),
    anvil.callAll(
      "anvil_setCode",
      accounts.map(([address, { code }]) => [address, formatData(code)]),
    ),
    anvil.callAll("anvil_setStorageAt", slots),
  ]);
};

const readBlock = async (anvil: Anvil): Promise<BlockEnvironment> => {
  const block = parseBaseBlock((await anvil.call("eth_getBlockByNumber", "latest", false)) as HeaderFields);
  return {
    number: block.number,
    timestamp: block.timestamp,
    coinbase: block.miner,
    gasLimit: block.gasLimit,
    baseFee: block.baseFeePerGas ?? 0n,
    prevRandao: block.mixHash,
    blobBaseFee: 1n,
    blockHash: (number) => (number === block.number ? block.hash : ZERO_HASH),
  };
};

interface Trace {
  readonly gasUsed: Hex;
  readonly output?: Hex;
  readonly error?: string;
}

const trace = async (anvil: Anvil, message: TransactionMessage): Promise<string> => {
  const call = {
    from: message.from,
    ...(message.to === null ? {} : { to: message.to }),
    gas: formatQuantity(message.gas),
    value: formatQuantity(message.value),
    data: formatData(message.input),
    maxFeePerGas: formatQuantity(message.maxFeePerGas),
    maxPriorityFeePerGas: formatQuantity(message.maxPriorityFeePerGas),
    accessList: message.accessList,
  };
  const result = (await anvil.call("debug_traceCall", call, "latest", { tracer: "callTracer" })) as Trace;
  return describe(result.error === undefined, BigInt(result.gasUsed), result.output ?? "0x");
};

const describe = (isSuccess: boolean, gasUsed: bigint, output: string): string =>
  `${isSuccess ? "success" : "failure"}, gas ${gasUsed}, output ${output}`;
const describeResult = ({ status, gasUsed, returnData }: TransactionResult): string =>
  describe(status === "success", gasUsed, formatData(returnData));

const isPlain = ({ blobVersionedHashes, authorizationList }: TransactionMessage): boolean =>
  blobVersionedHashes.length === 0 && authorizationList.length === 0;

/** Pays the base fee, and has gas for its data. */
const priced = (message: TransactionMessage, { baseFee }: BlockEnvironment): TransactionMessage => ({
  ...message,
  type: 2,
  gas: message.gas + EXTRA_GAS,
  maxFeePerGas: baseFee + message.maxPriorityFeePerGas,
});

for (const [args, rules] of FORKS) {
  test(`random programs: anvil ${args.join(" ")} has the same results`, async (t) => {
    const anvil = await startAnvil([...args, "--no-mining"]);
    t.after(() => anvil.close());
    const block = await readBlock(anvil);
    const random = createRandom(SEED);
    const statuses = new Set<string>();
    for (let at = 0; at < CASES; at++) {
      const { state, transactions } = randomCase(random, rules.fork);
      const snapshot = await anvil.call("evm_snapshot");
      await writeState(anvil, state);
      for (const [index, message] of transactions.filter(isPlain).entries()) {
        const call = priced(message, block);
        const context = { state: engines(rules).createState(readerOf(state, block.blockHash)), block };
        const result = await engines(rules).transact(context, call, { checks: CHECKS });
        statuses.add(result.status);
        assert.equal(
          describeResult(result),
          await trace(anvil, call),
          `case ${at}, transaction ${index} to ${call.to}`,
        );
      }
      await anvil.call("evm_revert", snapshot);
    }
    assert.deepEqual([...statuses].sort(), ["halt", "revert", "success"]);
  });
}
