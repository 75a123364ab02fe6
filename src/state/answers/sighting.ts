import type { BlockId } from "../../core/heads.ts";
import type { AnswerReads } from "./answerReads.ts";
import type { AnswerMethod } from "./callRun.ts";

/** A node's answer to a call, from which forebay can learn what the call reads. */
export interface Sighting {
  /** The canonical text of method and parameters without the block. */
  readonly key: string;
  readonly method: AnswerMethod;
  readonly body: Uint8Array;
  readonly block: BlockId;
  /** The name of the node that answered. */
  readonly node: string;
  /** Of the state follower, before the node was asked. */
  readonly generation: number;
  readonly clientId: string;
  /** The reads of an earlier execution. */
  readonly expected: AnswerReads | undefined;
}

/**
 * Why an answer was not learned. A label value of a metric.
 * `mismatch`: the execution here returns other bytes. `unknown`: a value could not be read, or there are too many.
 */
export type Refusal =
  | ("mismatch" | "failed" | "gas" | "defaults" | "unknown" | "never" | "forwarded")
  /** The values would cost more than learning may cost now. */
  | "budget"
  /** The block, or all values, are gone. */
  | "late";
