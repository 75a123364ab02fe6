import type { BlockId } from "../../../src/core/heads.ts";
import type { PlainCall, StateKeys, StateValues } from "../../../src/core/stateReader.ts";
import type { Hash } from "../../../src/ethereum/hex.ts";
import type { Rules } from "../../../src/ethereum/rules.ts";
import type { Engines } from "../../../src/evm/createEngines.ts";
import { CachedState } from "../../../src/evm/reads/cachedState.ts";
import type { ExecutableMessage, Execution, MessageBase } from "../../../src/pending/executableMessage.ts";
import { MessageExecutor } from "../../../src/pending/messageExecutor.ts";

export interface MessageRunnerOptions {
  readonly fetch: (base: BlockId, keys: StateKeys, calls?: readonly PlainCall[]) => Promise<StateValues>;
  readonly engine: Engines;
  readonly isNative?: (address: string) => boolean;
}

/** Executes messages in this thread. */
export interface MessageRunner {
  run(job: ExecutableMessage, rules: Rules, isExecutable?: boolean): Promise<Execution>;
  rebase(block: BlockId, through: number | undefined): void;
}

/** Creates an executor of messages without a thread, on the state of this base. */
export const createMessageRunner = (
  { fetch, engine, isNative = () => false }: MessageRunnerOptions,
  block: BlockId,
): MessageRunner => {
  const executor = new MessageExecutor();
  const codes = new Map<Hash, Uint8Array>();
  let base: MessageBase = { block, through: undefined, beginning: 0 };
  return {
    run: (job, rules, isExecutable = true) =>
      executor.run(
        { message: job, ahead: [], base, rules, isExecutable, maxSearchMs: Number.POSITIVE_INFINITY },
        { engine, known: new CachedState({ codes, isNative }), fetch: (keys, calls) => fetch(base.block, keys, calls) },
      ),
    rebase: (next, through) => {
      base = { block: next, through, beginning: base.beginning + (through === undefined ? 1 : 0) };
    },
  };
};
