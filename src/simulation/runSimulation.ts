import type { StateReader } from "../core/stateReader.ts";
import type { Hash } from "../ethereum/hex.ts";
import { type ChainForks, rulesAt } from "../ethereum/rules.ts";
import { StateOverlay } from "../evm/stateOverlay.ts";
import type { WorkerContext } from "../evm/workerMain.ts";
import { planBlocks } from "./blockPlan.ts";
import { type ErrorShape, formatBlock } from "./formatBlock.ts";
import { type Payload, parsePayload } from "./payload.ts";
import { type SimulatedBlock, simulateBlock } from "./simulateBlock.ts";
import type { ParentBlock, Profile } from "./simulatedHeader.ts";

/** A whole request of eth_simulateV1: plain data, sent to a worker. */
export interface SimulationInput {
  readonly paramsText: Uint8Array;
  readonly parent: ParentBlock;
  readonly forks: ChainForks;
  readonly profile: Profile;
  readonly errorShape: ErrorShape;
  /** Seconds from block to block where the caller says none. */
  readonly timeStep: bigint;
  /** Of the first block, where that is the pending one. */
  readonly firstTimestamp?: bigint;
  readonly maxBlocks: number;
  readonly maxCalls: number;
  readonly gasCap: bigint;
}

const encoder = new TextEncoder();

/** UTF-8 JSON text of the result. Throws RpcError. */
export const runSimulation = async (
  input: SimulationInput,
  host: Pick<WorkerContext, "engine" | "withState">,
): Promise<Uint8Array> => {
  const payload = parsePayload(input.paramsText, input);
  const blocks = await host.withState((reader) => simulate(input, payload, host, reader));
  const { errorShape, profile } = input;
  const { returnsFullTransactions } = payload;
  // The contract has one result for each entry; geth shows the blocks between them too.
  const shown = profile === "geth" ? blocks : blocks.filter(({ isGap }) => !isGap);
  return encoder.encode(
    JSON.stringify(shown.map(({ block }) => formatBlock(block, { errorShape, returnsFullTransactions }))),
  );
};

interface Shown {
  readonly block: SimulatedBlock;
  readonly isGap: boolean;
}

const simulate = async (
  input: SimulationInput,
  payload: Payload,
  host: Pick<WorkerContext, "engine">,
  reader: StateReader,
): Promise<readonly Shown[]> => {
  const { forks, profile } = input;
  const planned = planBlocks(input.parent, payload.blocks, input);
  const state = new StateOverlay(reader);
  const budget = { left: input.gasCap };
  const done: Shown[] = [];
  const hashes = new Map<bigint, Hash>([[input.parent.number, input.parent.hash]]);
  let parent = input.parent;
  for (const plan of planned) {
    const rules = rulesAt(forks, plan.number, plan.timestamp);
    const block = await simulateBlock(parent, plan, {
      profile,
      forks,
      rules,
      parentRules: rulesAt(forks, parent.number, parent.timestamp),
      engine: host.engine(rules),
      state,
      budget,
      validates: payload.validates,
      tracesTransfers: payload.tracesTransfers,
      blockHash: (number) => hashes.get(number) ?? reader.blockHash(number),
    });
    hashes.set(plan.number, block.hash);
    parent = parentOf(block, parent);
    done.push({ block, isGap: plan.isGap });
  }
  return done;
};

const parentOf = ({ header, hash }: SimulatedBlock, before: ParentBlock): ParentBlock => ({
  number: header.number,
  hash,
  timestamp: header.timestamp,
  miner: header.miner,
  gasLimit: header.gasLimit,
  gasUsed: header.gasUsed,
  difficulty: header.difficulty ?? 0n,
  mixHash: header.mixHash,
  // geth's headers have none, but an OP-stack chain's fee rules stand there.
  extraData: header.extraData === "0x" ? before.extraData : header.extraData,
  baseFeePerGas: header.baseFeePerGas,
  blobGasUsed: header.blobGasUsed ?? 0n,
  excessBlobGas: header.excessBlobGas ?? 0n,
  parentBeaconBlockRoot: header.parentBeaconBlockRoot ?? before.parentBeaconBlockRoot,
});
