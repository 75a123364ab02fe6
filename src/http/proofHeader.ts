import { type Grade, weakestGrade } from "../core/grade.ts";
import type { RpcResponse } from "../core/rpcSource.ts";

type Labelled = Pick<RpcResponse, "grade" | "block">;

/** Texts of more blocks are not kept. */
const MAX_TEXTS = 1_024;

/** Formats the header x-forebay-proof (docs/answers.md). The texts of blocks that are often read are formatted once. */
export class ProofHeader {
  readonly #texts: Readonly<Record<Grade, Map<bigint, string>>> = {
    stated: new Map(),
    checked: new Map(),
    proven: new Map(),
  };

  /** `isWhole`: the answer has no further items. */
  format(responses: readonly Labelled[], isWhole: boolean): string {
    const [first] = responses;
    if (first === undefined || !isWhole) {
      return "stated";
    }
    return responses.length === 1
      ? this.#textOf(first.grade ?? "stated", first.block?.number)
      : this.#formatMany(responses, first.block?.number);
  }

  /** A batch has the label of its weakest item, and a block if all items are of it. */
  #formatMany(responses: readonly Labelled[], number: bigint | undefined): string {
    const isOfOne = responses.every(({ block }) => block?.number === number);
    return this.#textOf(weakestGrade(responses.map(({ grade }) => grade)), isOfOne ? number : undefined);
  }

  #textOf(label: Grade, number: bigint | undefined): string {
    if (number === undefined) {
      return label;
    }
    const texts = this.#texts[label];
    const known = texts.get(number);
    if (known !== undefined) {
      return known;
    }
    if (texts.size >= MAX_TEXTS) {
      texts.clear();
    }
    const text = `${label}; block=${number}`;
    texts.set(number, text);
    return text;
  }
}
