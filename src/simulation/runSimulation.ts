import type { Hash } from "../ethereum/hex.ts";
import { concatBytes } from "../ethereum/rlp.ts";
import { type ChainForks, rulesAt } from "../ethereum/rules.ts";
import type { Engine } from "../evm/engine.ts";
import type { SteppedRun, Steps, WorkerContext } from "../evm/reads/complete.ts";
import { type PlannedBlock, planBlocks } from "./blockPlan.ts";
import { type ErrorShape, type FormatOptions, formatBlock } from "./formatBlock.ts";
import { type Payload, parsePayload } from "./payload.ts";
import { type SimulatedBlock, simulateBlock } from "./simulateBlock.ts";
import { OutputLimit } from "./simulateCall.ts";
import type { BaseBlock, Profile } from "./simulatedHeader.ts";

/** A whole request of eth_simulateV1. It is plain data, so that it can be sent to a worker. */
export interface SimulationInput {
  readonly paramsText: Uint8Array;
  readonly parent: BaseBlock;
  readonly forks: ChainForks;
  readonly profile: Profile;
  readonly errorShape: ErrorShape;
  /** Seconds between blocks if the client sets no time. */
  readonly timeStep: bigint;
  /** The timestamp of the first block if it is the pending block. */
  readonly firstTimestamp?: bigint | undefined;
  readonly maxBlocks: number;
  readonly maxCalls: number;
  readonly gasCap: bigint;
  /** Limit of the result's text. */
  readonly maxResponseBytes: number;
}

const encoder = new TextEncoder();
/** A longer text is encoded in pieces. */
const PIECE_CHARACTERS = 65_536;

/** Executes a simulation and returns the result as UTF-8 JSON text. Throws RpcError. Source: docs/methods.md, eth_simulateV1. */
export const runSimulation = async (input: SimulationInput, host: WorkerContext): Promise<Uint8Array> => {
  const payload = parsePayload(input.paramsText, input);
  const planned = planBlocks(input.parent, payload.blocks, input);
  const run: SteppedRun<readonly PlannedResult[]> = {
    createState: (reader) => engineAt(input, host, planned[0] ?? input.parent).createState(reader),
    execute: (steps) => simulate({ input, payload, planned }, host, steps),
  };
  const blocks = await host.complete(run);
  const { errorShape, profile } = input;
  const { returnsFullTransactions } = payload;
  // The contract defines one result per entry. geth also returns the blocks of gaps (docs/reference/simulate.md, Profiles).
  const returned = profile === "geth" ? blocks : blocks.filter(({ isGap }) => !isGap);
  return encodeBlocks(returned, { errorShape, returnsFullTransactions });
};

/** Encodes the blocks in pieces, so that the text of a large result exists once. */
const encodeBlocks = (blocks: readonly PlannedResult[], options: FormatOptions): Uint8Array => {
  const pieces: Uint8Array[] = [];
  let text = "[";
  let separator = "";
  for (const { block } of blocks) {
    const { calls, ...rest } = formatBlock(block, options);
    text += `${separator}${JSON.stringify(rest).slice(0, -1)},"calls":[`;
    separator = "";
    for (const call of calls) {
      text += separator + JSON.stringify(call);
      separator = ",";
      if (text.length > PIECE_CHARACTERS) {
        pieces.push(encoder.encode(text));
        text = "";
      }
    }
    text += "]}";
    separator = ",";
  }
  pieces.push(encoder.encode(`${text}]`));
  // Not a Buffer: a thread sends all the memory behind it, and Node.js shares 64 KiB between small ones.
  return concatBytes(pieces);
};

type BlockPosition = Pick<PlannedBlock, "number" | "timestamp">;

const engineAt = (
  { forks }: SimulationInput,
  host: Pick<WorkerContext, "engine">,
  { number, timestamp }: BlockPosition,
): Engine => host.engine(rulesAt(forks, number, timestamp));

interface PlannedSimulation {
  readonly input: SimulationInput;
  readonly payload: Payload;
  readonly planned: readonly PlannedBlock[];
}

interface PlannedResult {
  readonly block: SimulatedBlock;
  readonly isGap: boolean;
}

const simulate = async (
  { input, payload, planned }: PlannedSimulation,
  host: Pick<WorkerContext, "engine">,
  { step, reader, reads }: Steps,
): Promise<readonly PlannedResult[]> => {
  const { forks, profile } = input;
  const budget = { left: input.gasCap };
  const output = new OutputLimit(input.maxResponseBytes, payload.returnsFullTransactions);
  const results: PlannedResult[] = [];
  const hashes = new Map<bigint, Hash>([[input.parent.number, input.parent.hash]]);
  let parent = input.parent;
  for (const plan of planned) {
    const block = await simulateBlock(parent, plan, {
      profile,
      forks,
      parentRules: rulesAt(forks, parent.number, parent.timestamp),
      rules: rulesAt(forks, plan.number, plan.timestamp),
      engine: engineAt(input, host, plan),
      step,
      reads,
      budget,
      output,
      validates: payload.validates,
      tracesTransfers: payload.tracesTransfers,
      blockHash: (number) => hashes.get(number) ?? reader.blockHash(number),
    });
    hashes.set(plan.number, block.hash);
    parent = parentOf(block, parent);
    results.push({ block, isGap: plan.isGap });
  }
  return results;
};

const parentOf = ({ header, hash, slotNumber }: SimulatedBlock, before: BaseBlock): BaseBlock => ({
  number: header.number,
  hash,
  timestamp: header.timestamp,
  miner: header.miner,
  gasLimit: header.gasLimit,
  gasUsed: header.gasUsed,
  difficulty: header.difficulty ?? 0n,
  mixHash: header.mixHash,
  // Headers in geth's form have no extraData, but the fee rules of an OP-stack chain read it.
  extraData: header.extraData === "0x" ? before.extraData : header.extraData,
  baseFeePerGas: header.baseFeePerGas,
  blobGasUsed: header.blobGasUsed ?? 0n,
  excessBlobGas: header.excessBlobGas ?? 0n,
  slotNumber,
  parentBeaconBlockRoot: header.parentBeaconBlockRoot ?? before.parentBeaconBlockRoot,
});
