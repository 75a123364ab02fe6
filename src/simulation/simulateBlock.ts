import { blobBaseFee } from "../ethereum/blobFee.ts";
import { type BlockHeader, EMPTY_REQUESTS_HASH, hashHeader } from "../ethereum/blockHeader.ts";
import { bloomOfLogs } from "../ethereum/bloom.ts";
import { type Hash, parseData, ZERO_HASH } from "../ethereum/hex.ts";
import { smallestFootprint } from "../ethereum/opFees.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { encodeReceipt } from "../ethereum/receipt.ts";
import { encodeBytes, encodeList, encodeNumber } from "../ethereum/rlp.ts";
import { type ChainForks, isForkActive, isOpForkActive, type Rules } from "../ethereum/rules.ts";
import type { BlockEnvironment, Engine, EngineLog } from "../evm/engine.ts";
import type { ExecutionState } from "../evm/executionState.ts";
import { footprintScalarOf } from "../evm/opChainFees.ts";
import type { ReadRecorder } from "../evm/readRecorder.ts";
import { beginBlock, writeStartSlots } from "../evm/systemCalls.ts";
import { BlockGasPool } from "./blockGasPool.ts";
import type { PlannedBlock } from "./blockPlan.ts";
import { overrideState } from "./overrideState.ts";
import type { Withdrawal } from "./payload.ts";
import { runRequests } from "./requests.ts";
import { type GasBudget, type SimulatedCall, simulateCall } from "./simulateCall.ts";
import { beginHeader, type HeaderStart, type ParentBlock, type Profile } from "./simulatedHeader.ts";
import { type SimulatedTransaction, simulatedTransaction } from "./simulatedTransaction.ts";

const WEI_PER_GWEI = 1_000_000_000n;

export interface BlockContext {
  readonly profile: Profile;
  readonly validates: boolean;
  readonly tracesTransfers: boolean;
  readonly forks: ChainForks;
  readonly rules: Rules;
  readonly parentRules: Rules;
  readonly engine: Engine;
  readonly state: ExecutionState;
  readonly reads?: ReadRecorder | undefined;
  readonly budget: GasBudget;
  blockHash(number: bigint): Hash;
}

export interface SimulatedBlock {
  readonly header: BlockHeader;
  readonly hash: Hash;
  readonly rules: Rules;
  readonly calls: readonly SimulatedCall[];
  readonly transactions: readonly SimulatedTransaction[];
  readonly withdrawals: readonly Withdrawal[];
}

/** Simulates one block: overrides, system calls, the client's calls, withdrawals and the header. */
export const simulateBlock = async (
  parent: ParentBlock,
  planned: PlannedBlock,
  context: BlockContext,
): Promise<SimulatedBlock> => {
  const { engine, state, reads, rules, profile } = context;
  const start = beginHeader(parent, planned, context);
  const environment = environmentOf(start, planned, context);
  const movedPrecompiles = overrideState(state, planned.states, engine.precompiles, reads);
  await beginSystem(context, environment, start);
  // The read comes before the calls, so that one round fetches this value and theirs.
  const footprint = footprintOfCall(context, planned);
  const isAmsterdam = isForkActive(rules, "amsterdam");
  const gas = new BlockGasPool({ limit: environment.gasLimit, isAmsterdam, validates: context.validates });
  const calls: SimulatedCall[] = [];
  for (const request of planned.calls) {
    calls.push(await simulateCall(request, { ...context, block: environment, movedPrecompiles, gas }));
  }
  const transactions = calls.map(({ message }) => simulatedTransaction(message, rules.chainId));
  const logs = calls.flatMap(({ result }) => result.logs.filter(({ isTransfer }) => !isTransfer));
  const hasRequests = profile === "geth" && rules.op === undefined && isForkActive(rules, "prague");
  const requestsHash = hasRequests
    ? await runRequests({ engine, state, block: environment, reads }, logs, context.forks.depositContract)
    : EMPTY_REQUESTS_HASH;
  const withdrawals = planned.overrides.withdrawals ?? [];
  for (const { address, amount } of withdrawals) {
    state.addBalance(address, amount * WEI_PER_GWEI);
  }
  state.endTransaction(true);
  const header: BlockHeader = {
    ...start,
    // Most of the state is not known, so the root cannot be computed.
    stateRoot: ZERO_HASH,
    transactionsRoot: orderedTrieRoot(transactions.map(({ raw }) => raw)),
    receiptsRoot: receiptsRoot(calls, transactions),
    logsBloom: bloomOfLogs(logs),
    gasUsed: gas.used,
    ...(isForkActive(rules, "shanghai") ? { withdrawalsRoot: withdrawalsRoot(withdrawals, profile) } : {}),
    ...(isForkActive(rules, "cancun") ? { blobGasUsed: blobGasUsed(calls, footprint) } : {}),
    ...(isForkActive(rules, "prague") ? { requestsHash } : {}),
    // The list has accesses and values of the whole state after each call, which are not known.
    ...(isAmsterdam ? { blockAccessListHash: ZERO_HASH } : {}),
  };
  return { header, hash: hashHeader(header), rules, calls, transactions, withdrawals };
};

const environmentOf = (start: HeaderStart, planned: PlannedBlock, context: BlockContext): BlockEnvironment => {
  const { blobs } = context.rules;
  return {
    number: start.number,
    timestamp: start.timestamp,
    coinbase: start.miner,
    gasLimit: start.gasLimit,
    baseFee: start.baseFeePerGas ?? 0n,
    prevRandao: planned.overrides.prevRandao ?? ZERO_HASH,
    difficulty: start.difficulty ?? 0n,
    ...(start.slotNumber === undefined ? {} : { slotNumber: start.slotNumber }),
    blobBaseFee:
      planned.overrides.blobBaseFee ?? (blobs === undefined ? 1n : blobBaseFee(start.excessBlobGas ?? 0n, blobs)),
    blockHash: context.blockHash,
  };
};

/** geth calls the system contracts. The other profile writes their slots, so that their state need not be fetched. */
const beginSystem = async (context: BlockContext, environment: BlockEnvironment, start: HeaderStart): Promise<void> => {
  const { engine, state, reads } = context;
  const execution = { engine, state, block: environment, reads };
  const { parentHash, parentBeaconBlockRoot = ZERO_HASH } = start;
  if (context.profile === "geth") {
    await beginBlock(execution, { parentHash, parentBeaconBlockRoot });
  } else {
    writeStartSlots(execution, { parentHash, parentBeaconBlockRoot });
  }
};

const realLogs = (logs: readonly EngineLog[]) => logs.filter(({ isTransfer }) => !isTransfer);

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

/** Jovian counts data in `blobGasUsed`. OP-stack nodes simulate with an empty envelope, so each call has the smallest size. */
const footprintOfCall = (context: BlockContext, { calls }: PlannedBlock): bigint | undefined => {
  if (!isOpForkActive(context.rules, "jovian")) {
    return undefined;
  }
  return calls.length === 0 ? 0n : smallestFootprint(footprintScalarOf(context));
};

const blobGasUsed = (calls: readonly SimulatedCall[], footprint: bigint | undefined): bigint =>
  footprint === undefined
    ? calls.reduce((sum, { result }) => sum + result.blobGasUsed, 0n)
    : footprint * BigInt(calls.length);
