import type { BlockId } from "../../core/heads.ts";
import type { CallReads, CallResult } from "./callResult.ts";
import { CallRunner, type CallRunnerOptions, type KnownCall } from "./callRunner.ts";
import type { NodeDefaults } from "./nodeDefaults.ts";

export interface CallRerunsOptions extends CallRunnerOptions {
  /** Returns the environment that a node gives to calls, if it is known. */
  knownDefaults(node: string, block: BlockId): NodeDefaults | undefined;
}

/** A call whose answer ended, at a block of which all writes are known. */
export type EndedCall = Pick<KnownCall, "key" | "method" | "block">;

/** More of them would delay the simulations of clients. */
const MAX_RUNNING = 32;

/** Executes calls again whose answers have ended, if all values that they read are known. No node is asked. */
export class CallReruns {
  readonly #options: CallRerunsOptions;
  readonly #runner: CallRunner;
  #running = 0;

  constructor(options: CallRerunsOptions) {
    this.#options = options;
    this.#runner = new CallRunner(options);
  }

  /** Returns undefined at once if the call cannot be executed. The promise has undefined if a value is not known. */
  rerun(call: EndedCall, ended: CallResult): Promise<CallResult | undefined> | undefined {
    const { values, knownDefaults, checks } = this.#options;
    const defaults = knownDefaults(ended.node, call.block);
    if (!ended.isRepeatable || defaults === undefined || this.#running >= MAX_RUNNING) {
      return undefined;
    }
    const isReady = values.isReadable(call.block) && hasHeaderValues(ended.reads, defaults);
    return isReady && !checks.isForwarded(call.key, call.block) ? this.#run(call, ended, defaults) : undefined;
  }

  async #run({ key, method, block }: EndedCall, { node, reads }: CallResult, defaults: NodeDefaults) {
    const { generation } = this.#options.follower;
    this.#running++;
    try {
      const run = await this.#runner.run({ key, method, block, expected: reads }, defaults.gas);
      if (run.kind !== "done") {
        return undefined;
      }
      const result = this.#runner.resultOf({ key, method, block, node, generation }, run);
      return typeof result === "object" && hasHeaderValues(result.reads, defaults) ? result : undefined;
    } finally {
      this.#running--;
    }
  }
}

/** Whether the node takes the values of all opcodes that ran from the block's header, or from its ancestors. */
const hasHeaderValues = ({ blockOpcodes }: CallReads, { fromHeader }: NodeDefaults): boolean =>
  [...blockOpcodes].every((opcode) => opcode === "BLOCKHASH" || fromHeader.has(opcode));
