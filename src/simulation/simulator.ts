import type { BlockId } from "../core/heads.ts";
import type { RpcResponse } from "../core/rpcSource.ts";
import type { StateSource } from "../core/stateReader.ts";
import { type Data, formatQuantity, type Quantity } from "../ethereum/hex.ts";
import { areRulesKnown, type ChainForks } from "../ethereum/rules.ts";
import { type EvmWorkers, MustForwardError } from "../evm/evmWorkers.ts";
import type { PrefetchHint } from "../evm/prefetch.ts";
import type { AccessListResult, CallInput } from "./callRuns.ts";
import type { ErrorShape } from "./formatBlock.ts";
import type { SimulationInput } from "./runSimulation.ts";
import type { ParentBlock, Profile } from "./simulatedHeader.ts";

export interface SimulatorOptions {
  readonly workers: Pick<EvmWorkers, "run">;
  /** The rules as they are known now. */
  forks(): ChainForks;
  /** Addresses, or beginnings of addresses, whose code is native in a block of that time. */
  nativesAt(timestamp: bigint): readonly string[];
  readonly profile: Profile;
  readonly errorShape: ErrorShape;
  readonly maxBlocks: number;
  readonly maxCalls: number;
  readonly gasCap: bigint;
  readonly timeoutMs: number;
  /** Time from block to block, as it was measured or set. */
  blockTimeMs(): number;
  /** Told of each run that one has begun. */
  readonly onStart?: () => void;
  /** Told how a run went. */
  readonly onRun?: (kind: RunKind, run: RunReport) => void;
}

export interface RunReport {
  /** `forwarded`: it cannot be run here, a node answers. */
  readonly outcome: "ok" | "error" | "forwarded";
  /** Undefined where it did not end by itself. */
  readonly rounds: number | undefined;
  /** Waiting for a worker and for state included. */
  readonly seconds: number;
}

export type RunKind = "simulate" | "call" | "estimateGas" | "createAccessList";

/** What a run stands on. */
export interface RunBase {
  /** For a simulation the block before the first one, for a call the block that it runs in. */
  readonly block: ParentBlock;
  readonly source: StateSource;
  /** Simulations on the pending block: its time, which the first simulated block takes. */
  readonly firstTimestamp?: bigint;
}

/** Executes here. All of it rejects with RpcError, or with NotRunHere where a node must answer. */
export interface Simulator {
  simulate(paramsText: Uint8Array, base: RunBase, signal: AbortSignal): Promise<RpcResponse>;
  call(paramsText: Uint8Array, base: RunBase, signal: AbortSignal): Promise<RpcResponse>;
  estimateGas(paramsText: Uint8Array, base: RunBase, signal: AbortSignal): Promise<RpcResponse>;
  createAccessList(paramsText: Uint8Array, base: RunBase, signal: AbortSignal): Promise<RpcResponse>;
}

const GETH_STEP_SECONDS = 12n;
const encoder = new TextEncoder();

export const createSimulator = (options: SimulatorOptions): Simulator => {
  const { workers, profile, errorShape, maxBlocks, maxCalls, gasCap, timeoutMs, onStart, onRun } = options;

  const run = async (kind: RunKind, input: unknown, base: RunBase, signal: AbortSignal): Promise<unknown> => {
    const startMs = performance.now();
    const report = (outcome: RunReport["outcome"], rounds?: number): void =>
      onRun?.(kind, { outcome, rounds, seconds: (performance.now() - startMs) / 1000 });
    try {
      const { source, block } = base;
      if (block.unknownFields !== undefined || !areRulesKnown(options.forks(), block.timestamp)) {
        throw new MustForwardError(`the rules of block ${block.number} are not known`);
      }
      const nativeContracts = options.nativesAt(block.timestamp);
      const running = workers.run({ name: kind, input, source, nativeContracts, timeoutMs, signal });
      onStart?.();
      const { output, rounds } = await running;
      report("ok", rounds);
      return output;
    } catch (error) {
      report(error instanceof MustForwardError ? "forwarded" : "error");
      throw error;
    }
  };

  const answer = (body: Uint8Array, { block }: RunBase): RpcResponse => ({
    body,
    status: { hit: "local" },
    block: { number: block.number, hash: block.hash } satisfies BlockId,
  });

  const runCall = async (
    kind: RunKind,
    paramsText: Uint8Array,
    base: RunBase,
    signal: AbortSignal,
  ): Promise<RpcResponse> => {
    const input: CallInput = { paramsText, block: base.block, forks: options.forks(), gasCap };
    const output = await run(kind, input, base, signal);
    return answer(encoder.encode(JSON.stringify(formatOutput(output as Output))), base);
  };

  return {
    simulate: async (paramsText, base, signal) => {
      const { block: parent, firstTimestamp } = base;
      const input: SimulationInput = {
        paramsText,
        parent,
        forks: options.forks(),
        profile,
        errorShape,
        timeStep: profile === "geth" ? GETH_STEP_SECONDS : stepSeconds(options.blockTimeMs()),
        maxBlocks,
        maxCalls,
        gasCap,
        ...(firstTimestamp === undefined ? {} : { firstTimestamp }),
      };
      return answer((await run("simulate", input, base, signal)) as Uint8Array, base);
    },
    call: (paramsText, base, signal) => runCall("call", paramsText, base, signal),
    estimateGas: (paramsText, base, signal) => runCall("estimateGas", paramsText, base, signal),
    createAccessList: (paramsText, base, signal) => runCall("createAccessList", paramsText, base, signal),
  };
};

type Output = Data | bigint | AccessListResult;

const formatOutput = (output: Output): Data | Quantity | object => {
  if (typeof output === "bigint") return formatQuantity(output);
  return typeof output === "string" ? output : { ...output, gasUsed: formatQuantity(output.gasUsed) };
};

/** Headers count whole seconds. */
const stepSeconds = (blockTimeMs: number): bigint => BigInt(Math.max(1, Math.round(blockTimeMs / 1_000)));

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The calls that a payload of eth_simulateV1 begins with: nodes can be asked ahead what those will read. */
export const wishOfPayload = (params: readonly unknown[]): PrefetchHint | undefined => {
  const [payload] = params;
  const blocks = isRecord(payload) ? payload.blockStateCalls : undefined;
  const [block]: unknown[] = Array.isArray(blocks) ? blocks : [];
  if (!isRecord(block) || !Array.isArray(block.calls)) return undefined;
  return { calls: block.calls.filter(isRecord), stateOverrides: block.stateOverrides ?? undefined };
};

export const wishOfCall = ([call, , stateOverrides]: readonly unknown[]): PrefetchHint | undefined =>
  isRecord(call) ? { calls: [call], stateOverrides: stateOverrides ?? undefined } : undefined;
