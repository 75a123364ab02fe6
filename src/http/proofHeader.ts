import type { RpcResponse } from "../core/rpcSource.ts";

/** What an answer is, the weakest first. */
const LABELS = ["stated", "checked", "proven"] as const;
type ProofLabel = (typeof LABELS)[number];

type Labelled = Pick<RpcResponse, "proof" | "block">;

const labelOf = ({ proof }: Labelled): ProofLabel => proof ?? "stated";

/** Formats the header x-forebay-proof (docs/headers.md). Most answers are of the newest block, so its texts are formatted once. */
export class ProofHeader {
  #number: bigint | undefined;
  #texts: Readonly<Record<ProofLabel, string>> = { stated: "stated", checked: "checked", proven: "proven" };

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
    const labels = new Set(responses.map(labelOf));
    const isOfOne = responses.every(({ block }) => block?.number === number);
    return this.#textOf(LABELS.find((label) => labels.has(label)) ?? "stated", isOfOne ? number : undefined);
  }

  #textOf(label: ProofLabel, number: bigint | undefined): string {
    if (number === undefined) {
      return label;
    }
    if (number !== this.#number) {
      this.#number = number;
      const block = `; block=${number}`;
      this.#texts = { stated: `stated${block}`, checked: `checked${block}`, proven: `proven${block}` };
    }
    return this.#texts[label];
  }
}
