import type { RpcResponse } from "../core/rpcSource.ts";

/** What an answer is, the weakest first. */
const LABELS = ["stated", "checked", "proven"] as const;
type ProofLabel = (typeof LABELS)[number];

type Labelled = Pick<RpcResponse, "grade" | "block">;

const labelOf = ({ grade }: Labelled): ProofLabel => grade ?? "stated";

/** Texts of more blocks are not kept. */
const MAX_TEXTS = 1_024;

/** Formats the header x-forebay-proof (docs/answers.md). The texts of blocks that are often read are formatted once. */
export class ProofHeader {
  readonly #texts: Readonly<Record<ProofLabel, Map<bigint, string>>> = {
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
      ? this.#textOf(labelOf(first), first.block?.number)
      : this.#formatMany(responses, first.block?.number);
  }

  /** A batch has the label of its weakest item, and a block if all items are of it. */
  #formatMany(responses: readonly Labelled[], number: bigint | undefined): string {
    let weakest: ProofLabel = "proven";
    let isOfOne = true;
    for (const response of responses) {
      const label = labelOf(response);
      weakest = LABELS.indexOf(label) < LABELS.indexOf(weakest) ? label : weakest;
      isOfOne &&= response.block?.number === number;
    }
    return this.#textOf(weakest, isOfOne ? number : undefined);
  }

  #textOf(label: ProofLabel, number: bigint | undefined): string {
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
