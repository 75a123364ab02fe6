import type { Telemetry } from "../../telemetry/telemetry.ts";
import type { StateDifference } from "../stateDifference.ts";
import type { StateFollower } from "../stateFollower.ts";
import type { LocalAnswer } from "./answerSamples.ts";
import type { AnswerTable } from "./answerTable.ts";
import type { ForwardedContracts } from "./forwardedContracts.ts";

export interface AnswerDifferencesOptions {
  readonly chain: string;
  readonly table: Pick<AnswerTable, "clear">;
  readonly forwarded: Pick<ForwardedContracts, "add">;
  readonly follower: Pick<StateFollower, "generation">;
  readonly telemetry: Pick<Telemetry, "log" | "metrics">;
  /** Reads the values of the answer again, and returns the first wrong one. */
  findWrongValue(answer: LocalAnswer): Promise<StateDifference | undefined>;
  /** Drops all values, and rests their source. */
  onWrongValue(difference: StateDifference): void;
}

const decoder = new TextDecoder();

/** Reacts to a local answer that differs from the node's: finds out whether a known value or the execution is wrong. */
export class AnswerDifferences {
  readonly #options: AnswerDifferencesOptions;

  constructor(options: AnswerDifferencesOptions) {
    this.#options = options;
  }

  /** `actual` is the node's result at the block of the answer. Never rejects. */
  async report(answer: LocalAnswer, actual: unknown): Promise<void> {
    const { chain, table, forwarded, follower, telemetry, findWrongValue, onWrongValue } = this.#options;
    const { key, method, block, body } = answer;
    const { generation } = follower;
    table.clear();
    telemetry.metrics.stateAnswers.inc({ chain, method, event: "differed" });
    telemetry.log.error(
      { chain, request: key, number: block.number.toString(), hash: block.hash, known: decoder.decode(body), actual },
      "a local answer differs from the node's",
    );
    const wrong = await findWrongValue(answer);
    if (generation !== follower.generation) {
      return;
    }
    if (wrong === undefined) {
      forwarded.add(key, block);
      telemetry.log.error({ chain, request: key }, "its values are right: nodes execute this code until a restart");
    } else {
      onWrongValue(wrong);
    }
  }
}
