import type { StateReader } from "../../core/stateReader.ts";
import { larger } from "../../ethereum/bigintOrder.ts";
import { type Address, type Hash, ZERO_ADDRESS } from "../../ethereum/hex.ts";
import type { Rules } from "../../ethereum/rules.ts";
import type { AccessListEntry, DepositTransaction } from "../../ethereum/transaction.ts";
import { CONSENSUS_CHECKS, checkTransaction } from "../checks/checkTransaction.ts";
import type {
  BlockGas,
  DepositResult,
  Engine,
  EngineOptions,
  ModuleKind,
  TransactionContext,
  TransactionOptions,
  TransactionResult,
} from "../engine.ts";
import type { ExecutionState } from "../executionState.ts";
import { NONCE_OVERFLOW } from "../halts/haltText.ts";
import type { RejectedInput } from "../halts/precompileFault.ts";
import { l1AttributesOf, opChainFees } from "../opChainFees.ts";
import { SYSTEM, SYSTEM_GAS } from "../systemCalls.ts";
import type { TransactionMessage } from "../transactionMessage.ts";
import { formatModuleHalt } from "./fastHalt.ts";
import { FastInstances } from "./fastInstances.ts";
import {
  depositRequest,
  type FastRequest,
  requestOf,
  systemRequest,
  tracingReads,
  writeRequest,
} from "./fastRequest.ts";
import { type ModuleResult, readResult } from "./fastResult.ts";
import { eipsOf, type FastRules, fastRulesOf } from "./fastRules.ts";
import { FastState } from "./fastState.ts";
import { warmUp } from "./warmUp.ts";

const NOTHING = new Uint8Array(0);

/** Executes with revm in WebAssembly. */
export class FastEngine implements Engine {
  readonly rules: Rules;
  readonly precompiles: readonly Address[];
  readonly isActive: (eip: number) => boolean;
  readonly #rules: FastRules;
  readonly #instances: FastInstances;

  constructor(rules: Rules, instances: FastInstances) {
    this.rules = rules;
    this.isActive = eipsOf(rules);
    this.#rules = fastRulesOf(rules);
    this.#instances = instances;
    this.precompiles = instances.precompilesOf(this.#rules);
  }

  createState(reader: StateReader): ExecutionState {
    return new FastState(this.#instances.take(this.#rules.kind), reader);
  }

  async transact(
    context: TransactionContext,
    message: TransactionMessage,
    options: TransactionOptions = {},
  ): Promise<TransactionResult> {
    const { state, block, reads } = context;
    const { checks = CONSENSUS_CHECKS } = options;
    const place = { engine: this, state, block, reads };
    const cost = checkTransaction(place, message, checks, this.#chainCost(context, message, options));
    const request = requestOf(message, cost, this, options);
    const result = this.#run(context, request, "transact");
    const described = describe(result, message, () => this.#halt(result, message, options, cost.intrinsic));
    return {
      ...described,
      ...(this.isActive(8037) ? { blockGas: blockGasOf(result, cost.floor) } : {}),
      blobGasUsed: cost.blobGas,
      ...(options.tracesAccess ? { accessed: this.#accessed(result, message, block.coinbase) } : {}),
    };
  }

  async deposit(context: TransactionContext, deposit: DepositTransaction): Promise<DepositResult> {
    context.reads?.account(deposit.from, "nonce");
    const nonce = context.state.nonceOf(deposit.from);
    const result = this.#run(context, depositRequest(deposit), "transact");
    const input = { address: originalOf(deposit.to, {}), data: deposit.input, gas: deposit.gas };
    const halt = () => haltOf(result, input, this.rules);
    return { ...describe(result, deposit, halt), blobGasUsed: 0n, nonce };
  }

  async systemCall(context: TransactionContext, to: Address, data: Uint8Array): Promise<Uint8Array> {
    context.reads?.account(to, "code");
    if (context.state.codeOf(to).length === 0) {
      return NOTHING;
    }
    const result = this.#run(context, systemRequest(SYSTEM, to, SYSTEM_GAS, data), "system_call");
    return result.status === "halt" ? NOTHING : result.returnData;
  }

  /** Returns the fee that the chain charges besides gas. */
  #chainCost(context: TransactionContext, { gas }: TransactionMessage, { raw }: TransactionOptions): bigint {
    if (raw === undefined || this.rules.op === undefined) {
      return 0n;
    }
    return opChainFees(this.rules, l1AttributesOf(context), raw, gas);
  }

  #run(
    { state, block, reads }: TransactionContext,
    request: FastRequest,
    name: "transact" | "system_call",
  ): ModuleResult {
    if (!(state instanceof FastState)) {
      throw new TypeError("the state was created by an engine of another kind");
    }
    const { instance } = state;
    instance.select(state);
    instance.setBlock(this.#rules, block);
    const length = writeRequest(instance, reads === undefined ? request : tracingReads(request));
    const outcome = readResult(instance.memory, instance.run(name, length));
    switch (outcome.status) {
      case "readerFailed":
        return instance.throwReaderError();
      case "late":
        return instance.throwDeadline();
      case "fault":
        throw new Error(`the module failed: ${outcome.text}`);
      default:
        if (outcome.reads !== undefined) {
          reads?.add(outcome.reads);
        }
        return outcome;
    }
  }

  #halt(result: ModuleResult, message: TransactionMessage, options: TransactionOptions, intrinsic: bigint): string {
    const gas = message.gas - intrinsic;
    return haltOf(result, { address: originalOf(message.to, options), data: message.input, gas }, this.rules);
  }

  /** Leaves out what was warm before. */
  #accessed({ accessed }: ModuleResult, message: TransactionMessage, coinbase: Address): readonly AccessListEntry[] {
    const { from, to, accessList } = message;
    const warm = new Set<Address>([from, ...this.precompiles, ...(to === null ? [] : [to])]);
    if (this.isActive(3651)) {
      warm.add(coinbase);
    }
    const warmSlots = new Set<string>();
    for (const { address, storageKeys } of accessList) {
      warm.add(address);
      for (const slot of storageKeys) {
        warmSlots.add(address + slot);
      }
    }
    const found = new Map<Address, Set<Hash>>();
    const slotsOf = (address: Address) => found.get(address) ?? found.set(address, new Set()).get(address);
    for (const [address, slot] of accessed) {
      if (slot !== undefined && !warmSlots.has(address + slot)) {
        slotsOf(address)?.add(slot);
      } else if (slot === undefined && !warm.has(address)) {
        slotsOf(address);
      }
    }
    return [...found].map(([address, slots]) => ({ address, storageKeys: [...slots] }));
  }
}

/** Returns the parts of the block's two sums of gas (EIP-8037). `floor`: the minimum charge. */
const blockGasOf = ({ stateGas, maxUsedGas }: ModuleResult, floor: bigint): BlockGas => ({
  execution: larger(maxUsedGas - stateGas, floor),
  state: stateGas,
});

type Described = Omit<TransactionResult, "blobGasUsed">;

/** The precompile that runs at an address. */
const originalOf = (to: Address | null, { movedPrecompiles }: TransactionOptions): Address =>
  (to === null ? undefined : (movedPrecompiles?.get(to) ?? to)) ?? ZERO_ADDRESS;

const describe = (result: ModuleResult, { to }: { readonly to: Address | null }, halt: () => string): Described => {
  const { gasUsed, maxUsedGas } = result;
  const failed = { gasUsed, maxUsedGas, logs: [] };
  if (result.status === "revert") {
    return { ...failed, status: "revert", returnData: result.returnData };
  }
  if (result.status !== "success") {
    return { ...failed, status: "halt", halt: halt(), returnData: NOTHING };
  }
  const { created, returnData, logs } = result;
  if (to === null && created === undefined) {
    return { ...failed, status: "halt", halt: NONCE_OVERFLOW, returnData: NOTHING };
  }
  return {
    status: "success",
    gasUsed,
    maxUsedGas,
    logs,
    returnData,
    ...(created === undefined ? {} : { created }),
  };
};

const haltOf = (result: ModuleResult, input: RejectedInput, rules: Rules): string =>
  result.status === "failedDeposit" && result.lastStep === undefined
    ? "failed deposit"
    : formatModuleHalt(result, input, rules);

/** Returns a function that makes engines. Their states share the instances of the modules. */
export const createFastEngines = async ({ isLate, module }: EngineOptions): Promise<(rules: Rules) => Engine> => {
  const instances = new FastInstances(isLate);
  if (module !== undefined) {
    await warmUp(new FastEngine(WARM_UP_RULES[module], instances));
  }
  return (rules) => new FastEngine(rules, instances);
};

const WARM_UP_RULES: Readonly<Record<ModuleKind, Rules>> = {
  ethereum: { chainId: 1n, fork: "osaka" },
  optimism: { chainId: 10n, fork: "prague", op: "jovian" },
};
