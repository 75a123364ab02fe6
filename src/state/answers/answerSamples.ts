import type { BlockId } from "../../core/heads.ts";
import { NodeError } from "../../core/node.ts";
import type { StateFetch } from "../../core/stateReader.ts";
import { createCall } from "../../jsonrpc/call.ts";
import type { StateCost } from "../stateCost.ts";
import type { AnswerReads } from "./answerReads.ts";
import { paramsOfKey } from "./callKey.ts";
import type { AnswerMethod } from "./callRun.ts";

/** An answer that no node was asked for. */
export interface LocalAnswer {
  readonly key: string;
  readonly method: AnswerMethod;
  readonly block: BlockId;
  readonly body: Uint8Array;
  readonly reads: AnswerReads;
}

export interface AnswerSamplesOptions {
  readonly fetch: StateFetch;
  readonly cost: Pick<StateCost, "unitsOf" | "spend" | "takeSample">;
  onCompared(method: AnswerMethod): void;
  /** Called with the node's result of an answer that differs. */
  onDifference(answer: LocalAnswer, actual: unknown): void;
  /** Called if the node's result may be of a BLOCKHASH that was zero. */
  onDoubted(answer: LocalAnswer): void;
}

/** The position of the block parameter. */
const BLOCK = 1;

const decoder = new TextDecoder();

/** The node's error shows that the call fails. Other errors say nothing about the call. */
const isFailure = (outcome: unknown): boolean => outcome instanceof NodeError && outcome.kind === "revert";

/** Compares a share of local answers with a node, at the block of the answer. */
export class AnswerSamples {
  readonly #options: AnswerSamplesOptions;

  constructor(options: AnswerSamplesOptions) {
    this.#options = options;
  }

  /** Called with each local answer. */
  consider(answer: LocalAnswer): void {
    if (this.#options.cost.takeSample()) {
      void this.#ask(answer);
    }
  }

  /** Compares a local answer with the result of a node at the same block, or with the node's error. */
  compare(answer: LocalAnswer, outcome: unknown): void {
    if (!isComparable(outcome)) {
      return;
    }
    this.#options.onCompared(answer.method);
    if (!differs(answer, outcome)) {
      return;
    }
    if (answer.reads.blockOpcodes.has("BLOCKHASH")) {
      this.#options.onDoubted(answer);
      void this.#confirm(answer);
    } else {
      this.#report(answer, outcome);
    }
  }

  #report(answer: LocalAnswer, outcome: unknown): void {
    this.#options.onDifference(answer, outcome instanceof NodeError ? outcome.message : outcome);
  }

  /**
   * Asks once more. geth's BLOCKHASH is zero for a block that exists if the call runs out of time, and during a
   * reorganisation. It ignores the error of reading the header. Source: geth, core/evm.go, GetHashFn.
   */
  async #confirm(answer: LocalAnswer): Promise<void> {
    const outcome = await this.#read(answer);
    if (isComparable(outcome) && differs(answer, outcome)) {
      this.#report(answer, outcome);
    }
  }

  async #ask(answer: LocalAnswer): Promise<void> {
    this.compare(answer, await this.#read(answer));
  }

  /** Reads the node's result, or undefined if it does not respond. */
  async #read({ key, method, block }: LocalAnswer): Promise<unknown> {
    const { fetch, cost } = this.#options;
    const call = createCall(method, paramsOfKey(key).with(BLOCK, { blockHash: block.hash }));
    cost.spend("sample", cost.unitsOf(method));
    const [outcome] = await fetch([call], block).catch(() => []);
    return outcome;
  }
}

const isComparable = (outcome: unknown): boolean => typeof outcome === "string" || isFailure(outcome);

const differs = ({ body }: LocalAnswer, outcome: unknown): boolean => {
  const known: unknown = JSON.parse(decoder.decode(body));
  return typeof outcome !== "string" || outcome.toLowerCase() !== String(known).toLowerCase();
};
