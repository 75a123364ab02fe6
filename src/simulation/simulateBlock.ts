import { createHash } from "node:crypto";
import { blobBaseFee } from "../ethereum/blockFees.ts";
import { type BlockHeader, EMPTY_REQUESTS_HASH, encodeHeader } from "../ethereum/blockHeader.ts";
import { bloomOfLogs } from "../ethereum/bloom.ts";
import { type Address, type Hash, parseData, ZERO_HASH } from "../ethereum/hex.ts";
import { keccak256Hex } from "../ethereum/keccak.ts";
import { smallestFootprint } from "../ethereum/opFees.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { encodeReceipt, type LogEntry } from "../ethereum/receipt.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber } from "../ethereum/rlp.ts";
import { type ChainForks, isForkActive, isOpForkActive, type Rules } from "../ethereum/rules.ts";
import {
  BUILDER_DEPOSITS,
  BUILDER_EXITS,
  CONSOLIDATION_REQUESTS,
  WITHDRAWAL_REQUESTS,
} from "../ethereum/systemContracts.ts";
import type { ActiveRules, BlockEnvironment, Engine, EngineLog } from "../evm/engine.ts";
import { footprintScalarOf } from "../evm/opChainFees.ts";
import type { ReadRecorder } from "../evm/readRecorder.ts";
import type { Step } from "../evm/reads/complete.ts";
import { type BlockStart, startCalls, writeStartSlots } from "../evm/systemCalls.ts";
import type { PlannedBlock } from "./blockPlan.ts";
import { overrideState } from "./overrideState.ts";
import type { Withdrawal } from "./payload.ts";
import { BlockGasPool, type GasBudget, type OutputLimit, type SimulatedCall, simulateCall } from "./simulateCall.ts";
import { type BaseBlock, beginHeader, type HeaderStart, type Profile } from "./simulatedHeader.ts";
import { type SimulatedTransaction, simulatedTransaction } from "./simulatedTransaction.ts";

interface BlockContext extends ExecutionOptions {
  readonly parentRules: Rules;
  blockHash(number: bigint): Hash;
}

export interface SimulatedBlock {
  readonly header: BlockHeader;
  readonly hash: Hash;
  /** Of the header's encoding. */
  readonly headerLength: number;
  /** Of the block's environment. The header does not have it. */
  readonly slotNumber: bigint | undefined;
  readonly rules: Rules;
  readonly calls: readonly SimulatedCall[];
  readonly transactions: readonly SimulatedTransaction[];
  readonly withdrawals: readonly Withdrawal[];
}

/** Simulates one block: overrides, system calls, the client's calls, withdrawals and the header. */
export const simulateBlock = async (
  parent: BaseBlock,
  planned: PlannedBlock,
  context: BlockContext,
): Promise<SimulatedBlock> => {
  const { rules, profile } = context;
  // A simulated block is in no slot. Code reads the one that would follow.
  const { slotNumber, ...start } = beginHeader(parent, planned, context);
  const { parentHash, parentBeaconBlockRoot = ZERO_HASH } = start;
  const { calls, gasUsed, footprint, requestsHash } = await executeBlock(planned, {
    ...context,
    start: { parentHash, parentBeaconBlockRoot },
    block: environmentOf(start, slotNumber, planned, context),
  });
  const transactions = calls.map(({ message }) => simulatedTransaction(message, rules.chainId));
  const withdrawals = planned.overrides.withdrawals ?? [];
  const header: BlockHeader = {
    ...start,
    // Most of the state is not known, so the root cannot be computed.
    stateRoot: ZERO_HASH,
    transactionsRoot: orderedTrieRoot(transactions.map(({ raw }) => raw)),
    receiptsRoot: receiptsRoot(calls, transactions),
    logsBloom: bloomOfLogs(calls.flatMap(({ result }) => realLogs(result.logs))),
    gasUsed,
    ...(isForkActive(rules, "shanghai") ? { withdrawalsRoot: withdrawalsRoot(withdrawals, profile) } : {}),
    ...(isForkActive(rules, "cancun") ? { blobGasUsed: blobGasUsed(calls, footprint) } : {}),
    ...(isForkActive(rules, "prague") ? { requestsHash: requestsHash ?? EMPTY_REQUESTS_HASH } : {}),
    // The list has accesses and values of the whole state after each call, which are not known.
    ...(isForkActive(rules, "amsterdam") ? { blockAccessListHash: ZERO_HASH } : {}),
  };
  const encoded = encodeHeader(header);
  const hash = keccak256Hex(encoded);
  return { header, hash, headerLength: encoded.length, slotNumber, rules, calls, transactions, withdrawals };
};

const environmentOf = (
  start: HeaderStart,
  slotNumber: bigint | undefined,
  planned: PlannedBlock,
  context: BlockContext,
): BlockEnvironment => {
  const { blobs } = context.rules;
  return {
    number: start.number,
    timestamp: start.timestamp,
    coinbase: start.miner,
    gasLimit: start.gasLimit,
    baseFee: start.baseFeePerGas ?? 0n,
    prevRandao: planned.overrides.prevRandao ?? ZERO_HASH,
    difficulty: start.difficulty ?? 0n,
    ...(slotNumber === undefined ? {} : { slotNumber }),
    blobBaseFee:
      planned.overrides.blobBaseFee ?? (blobs === undefined ? 1n : blobBaseFee(start.excessBlobGas ?? 0n, blobs)),
    blockHash: context.blockHash,
  };
};

const receiptsRoot = (calls: readonly SimulatedCall[], transactions: readonly SimulatedTransaction[]): Hash => {
  let cumulativeGasUsed = 0n;
  const receipts = calls.map(({ result }, at) => {
    cumulativeGasUsed += result.gasUsed;
    const logs = realLogs(result.logs);
    const type = transactions[at]?.message.type ?? 0;
    const status = result.status === "success";
    return encodeReceipt({ type, status, cumulativeGasUsed, logs, logsBloom: bloomOfLogs(logs) });
  });
  return orderedTrieRoot(receipts);
};

const withdrawalsRoot = (withdrawals: readonly Withdrawal[], profile: Profile): Hash =>
  profile === "geth" ? orderedTrieRoot(withdrawals.map(encodeWithdrawal)) : ZERO_HASH;

/** Encodes a withdrawal. Source: EIP-4895. */
export const encodeWithdrawal = ({ index, validatorIndex, address, amount }: Withdrawal): Uint8Array =>
  encodeList([
    encodeNumber(index),
    encodeNumber(validatorIndex),
    encodeBytes(parseData(address)),
    encodeNumber(amount),
  ]);

const blobGasUsed = (calls: readonly SimulatedCall[], footprint: bigint | undefined): bigint =>
  footprint === undefined
    ? calls.reduce((sum, { result }) => sum + result.blobGasUsed, 0n)
    : footprint * BigInt(calls.length);

/** keccak("DepositEvent(bytes,bytes,bytes,bytes,bytes)"), the topic of EIP-6110. */
const DEPOSIT_TOPIC = "0x649bbc62d0e31342afea4e5cd82d4049e7e1ee912fc0889aa790803be39038c5";
/** Offset and length of the five fields in the data of a deposit event (EIP-6110). */
const DEPOSIT_FIELDS: readonly (readonly [at: number, bytes: number])[] = [
  [192, 48],
  [288, 32],
  [352, 8],
  [416, 96],
  [544, 8],
];
const NOTHING = new Uint8Array(0);

interface RequestContracts extends Pick<ActiveRules, "isActive"> {
  /** Calls a contract as the system account. */
  call(contract: Address, data: Uint8Array): Promise<Uint8Array>;
}

/**
 * Collects the requests to the consensus layer at the end of a block and returns their hash.
 * `logs` are those of the whole block. Source: EIP-7685.
 */
const runRequests = async (
  contracts: RequestContracts,
  logs: readonly LogEntry[],
  depositContract: Address | undefined,
): Promise<Hash> => {
  const deposits = logs.filter(({ address, topics }) => address === depositContract && topics[0] === DEPOSIT_TOPIC);
  const requests = [
    concatBytes(deposits.map(({ data }) => depositRequest(parseData(data)))),
    await contracts.call(WITHDRAWAL_REQUESTS, NOTHING),
    await contracts.call(CONSOLIDATION_REQUESTS, NOTHING),
  ];
  for (const contract of contracts.isActive(8282) ? [BUILDER_DEPOSITS, BUILDER_EXITS] : []) {
    requests.push(await contracts.call(contract, NOTHING));
  }
  const hash = createHash("sha256");
  for (const [type, request] of requests.entries()) {
    if (request.length === 0) {
      continue;
    }
    hash.update(createHash("sha256").update(Uint8Array.of(type)).update(request).digest());
  }
  return `0x${hash.digest("hex")}`;
};

const depositRequest = (data: Uint8Array): Uint8Array =>
  concatBytes(DEPOSIT_FIELDS.map(([at, bytes]) => data.subarray(at, at + bytes)));

const WEI_PER_GWEI = 1_000_000_000n;

interface ExecutionOptions {
  readonly profile: Profile;
  readonly validates: boolean;
  readonly tracesTransfers: boolean;
  readonly forks: ChainForks;
  readonly rules: Rules;
  readonly engine: Engine;
  readonly step: Step;
  readonly reads?: ReadRecorder | undefined;
  readonly budget: GasBudget;
  readonly output: OutputLimit;
}

interface BlockExecution extends ExecutionOptions {
  readonly start: BlockStart;
  readonly block: BlockEnvironment;
}

interface ExecutedBlock {
  readonly calls: readonly SimulatedCall[];
  readonly gasUsed: bigint;
  /** The data footprint of one call. Undefined before Jovian. */
  readonly footprint: bigint | undefined;
  /** Undefined if the block has no requests. */
  readonly requestsHash: Hash | undefined;
}

/** Executes overrides, system calls, the client's calls and withdrawals. Each transaction, and each other access to the state, is a step. */
const executeBlock = async (planned: PlannedBlock, execution: BlockExecution): Promise<ExecutedBlock> => {
  const { engine, step, reads } = execution;
  const movedPrecompiles = await step((state) => overrideState(state, planned.states, engine.precompiles, reads));
  await beginSystem(execution);
  // The read comes before the calls, so that one round fetches this value and theirs.
  const footprint = await footprintOfCall(execution, planned);
  const { gasUsed, calls } = await executeCalls(planned, { ...execution, movedPrecompiles });
  const requestsHash = await requestsOf(execution, calls);
  await creditWithdrawals(execution, planned);
  return { calls, gasUsed, footprint, requestsHash };
};

/** geth calls the system contracts. The other profile writes their slots, so that their state need not be fetched. */
const beginSystem = async ({ profile, engine, step, block, reads, start }: BlockExecution): Promise<void> => {
  if (profile !== "geth") {
    await step((state) => writeStartSlots({ engine, state, block }, start));
    return;
  }
  for (const [to, data] of startCalls(engine, start)) {
    await step((state) => engine.systemCall({ state, block, reads }, to, data));
  }
};

/** Jovian counts data in `blobGasUsed`. OP-stack nodes simulate with an empty envelope, so each call has the smallest size. */
const footprintOfCall = async (
  { rules, step, reads }: BlockExecution,
  { calls }: PlannedBlock,
): Promise<bigint | undefined> => {
  if (!isOpForkActive(rules, "jovian")) {
    return undefined;
  }
  return calls.length === 0 ? 0n : smallestFootprint(await step((state) => footprintScalarOf({ state, reads })));
};

const executeCalls = async (
  planned: PlannedBlock,
  execution: BlockExecution & { readonly movedPrecompiles: ReturnType<typeof overrideState> },
): Promise<Pick<ExecutedBlock, "calls" | "gasUsed">> => {
  const { rules, budget, output, step, block } = execution;
  const gas = new BlockGasPool({ limit: block.gasLimit, isAmsterdam: isForkActive(rules, "amsterdam") });
  const calls: SimulatedCall[] = [];
  for (const request of planned.calls) {
    const call = await step((state) => simulateCall(request, { ...execution, state, gas }));
    budget.left -= call.result.gasUsed;
    gas.add(call.result);
    output.add(call);
    calls.push(call);
  }
  return { calls, gasUsed: gas.used };
};

/** The logs of a call that are part of its receipt. */
const realLogs = (logs: readonly EngineLog[]) => logs.filter(({ isTransfer }) => !isTransfer);

const requestsOf = async (
  { profile, rules, engine, forks, step, block, reads }: BlockExecution,
  calls: readonly SimulatedCall[],
): Promise<Hash | undefined> => {
  if (profile !== "geth" || rules.op !== undefined || !isForkActive(rules, "prague")) {
    return undefined;
  }
  const logs = calls.flatMap(({ result }) => realLogs(result.logs));
  const contracts: RequestContracts = {
    isActive: (eip) => engine.isActive(eip),
    call: (contract, data) => step((state) => engine.systemCall({ state, block, reads }, contract, data)),
  };
  return runRequests(contracts, logs, forks.depositContract);
};

const creditWithdrawals = async ({ step }: BlockExecution, { overrides }: PlannedBlock): Promise<void> => {
  for (const { address, amount } of overrides.withdrawals ?? []) {
    await step((state) => state.addBalance(address, amount * WEI_PER_GWEI));
  }
  await step((state) => state.endTransaction(true));
};
