import { LRUCache } from "lru-cache";
import type { StateReader } from "../../../src/core/stateReader.ts";
import { fixedForks } from "../../../src/ethereum/chainForks.ts";
import {
  type Address,
  type Data,
  formatData,
  type Hash,
  parseData,
  ZERO_ADDRESS,
  ZERO_HASH,
} from "../../../src/ethereum/hex.ts";
import { stripZeros } from "../../../src/ethereum/rlp.ts";
import { type EthereumFork, rulesAt } from "../../../src/ethereum/rules.ts";
import { createEngines } from "../../../src/evm/createEngines.ts";
import type { Engine, TransactionResult } from "../../../src/evm/engine.ts";
import { createMessage } from "../../support/builders/plainCall.ts";
import { FakeError } from "../../support/fakes/front.ts";
import type { CallObject, Overrides } from "../chain/nodeAnswers.ts";
import { BASE_FEE, type SealedBlock } from "../chain/sealedBlock.ts";
import { CodeHashes } from "./codeHashes.ts";
import type { StateValuesReader } from "./stateKeys.ts";

/** The blocks and the state on which calls are executed. */
interface CalledChain {
  readonly chainId: number;
  readonly fork: EthereumFork;
  at(number: number): SealedBlock | undefined;
  stateAt(hash: Hash): StateValuesReader;
}

/** The gas of a call without `gas`, like geth. */
const DEFAULT_GAS = 50_000_000n;
/** More than the calls of two blocks. */
const MAX_RESULTS = 5_000;
/** Calls have no cap of execution gas, as in go-ethereum (docs/reference/forks.md). */
const CALL_OPTIONS = { checks: { nonce: false, sender: false, freeGas: true, liftsExecutionCap: true } };

const lower = (address: string): Address => address.toLowerCase() as Address;

const createEngine = async ({ chainId, fork }: CalledChain): Promise<Engine> =>
  (await createEngines("fast"))(rulesAt(fixedForks(BigInt(chainId), fork), 1n, 1n));

/** Executes calls on the state of a stand-in chain. */
export class StandInCalls {
  readonly #chain: CalledChain;
  #engine: Promise<Engine> | undefined;
  readonly #results = new LRUCache<string, Promise<TransactionResult>>({ max: MAX_RESULTS });
  readonly #codeHashes = new CodeHashes();

  constructor(chain: CalledChain) {
    this.#chain = chain;
  }

  /** Answers eth_call after a block. */
  async answer(block: SealedBlock, call: CallObject, overrides: Overrides): Promise<Data> {
    const result = await this.call(block, call, overrides);
    if (result.status !== "success") {
      throw new FakeError(3, "execution reverted", formatReturnData(result));
    }
    return formatReturnData(result);
  }

  /** Executes a call after a block, once for equal calls. */
  call(block: SealedBlock, call: CallObject, overrides: Overrides = {}): Promise<TransactionResult> {
    const key = JSON.stringify([block.hash, call, overrides]);
    const result = this.#results.get(key) ?? this.#execute(block, call, overrides);
    this.#results.set(key, result);
    return result;
  }

  async #execute(block: SealedBlock, call: CallObject, overrides: Overrides): Promise<TransactionResult> {
    this.#engine ??= createEngine(this.#chain);
    const engine = await this.#engine;
    const state = engine.createState(stateReaderAt(this.#chain, block.hash, this.#codeHashes, overrides));
    const { header } = block;
    const environment = {
      number: header.number,
      timestamp: header.timestamp,
      coinbase: header.miner,
      gasLimit: header.gasLimit,
      baseFee: BASE_FEE,
      prevRandao: header.mixHash,
      blobBaseFee: 1n,
      blockHash: () => ZERO_HASH,
    };
    const message = createMessage({
      from: lower(call.from ?? ZERO_ADDRESS),
      to: call.to === undefined ? null : lower(call.to),
      input: parseData(call.data ?? call.input ?? "0x"),
      gas: call.gas === undefined ? DEFAULT_GAS : BigInt(call.gas),
      value: BigInt(call.value ?? 0),
    });
    return engine.transact({ state, block: environment }, message, CALL_OPTIONS);
  }
}

/** Reads the state after a block of any branch, with some codes and balances replaced. */
export const stateReaderAt = (
  chain: Pick<CalledChain, "at" | "stateAt">,
  hash: Hash,
  codeHashes: CodeHashes,
  overrides: Overrides = {},
): StateReader => {
  const state = chain.stateAt(hash);
  const codes = new Map(Object.entries(overrides).map(([address, { code }]) => [lower(address), code]));
  const balances = new Map(Object.entries(overrides).map(([address, { balance }]) => [lower(address), balance]));
  const codeOf = (address: Address): Data => codes.get(address) ?? state.code(address);
  return {
    account: (address) =>
      state.exists(address) || codes.has(address)
        ? {
            balance: BigInt(balances.get(address) ?? state.balance(address)),
            nonce: state.nonce(address),
            codeHash: codeHashes.of(codeOf(address)),
          }
        : undefined,
    code: (_hash, address) => parseData(codeOf(address)),
    storage: (address, slot) => stripZeros(parseData(state.slot(address, slot))),
    blockHash: (number) => chain.at(Number(number))?.hash ?? ZERO_HASH,
  };
};

export const formatReturnData = ({ returnData }: TransactionResult): Data => formatData(returnData);
