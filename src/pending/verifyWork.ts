import type { PendingEnvironment } from "../core/view.ts";
import { createBloom, orBloom } from "../ethereum/bloom.ts";
import { formatData } from "../ethereum/hex.ts";
import { orderedTrieRoot } from "../ethereum/orderedTrie.ts";
import { encodeReceipt, type Receipt } from "../ethereum/receipt.ts";
import type { UnverifiedReason, Work } from "./execution.ts";
import type { Layer } from "./stateLayers.ts";

/** A work that was run: what the next one starts from. */
export interface ExecutedFlashblock {
  readonly id: number;
  /** Gone where the base has passed it. */
  readonly before: number | undefined;
  readonly environment: PendingEnvironment;
  readonly raws: readonly Uint8Array[];
  readonly encodedReceipts: readonly Uint8Array[];
  readonly bloom: Uint8Array;
  readonly gasUsed: bigint;
  /** Undefined where its state is not known: nothing after it can be run. */
  readonly layer: Layer | undefined;
}

/** The block so far, with these transactions and receipts after those of `before`. */
export const extend = (
  work: Work,
  before: ExecutedFlashblock | undefined,
  raws: readonly Uint8Array[],
  receipts: readonly Receipt[],
): ExecutedFlashblock => {
  const earlier = work.index === 0 ? undefined : before;
  const bloom = Uint8Array.from(earlier?.bloom ?? createBloom());
  for (const { logsBloom } of receipts) orBloom(bloom, logsBloom);
  return {
    id: work.id,
    before: work.before,
    environment: work.environment,
    raws: [...(earlier?.raws ?? []), ...raws],
    encodedReceipts: [...(earlier?.encodedReceipts ?? []), ...receipts.map(encodeReceipt)],
    bloom,
    gasUsed: receipts.at(-1)?.cumulativeGasUsed ?? earlier?.gasUsed ?? 0n,
    layer: undefined,
  };
};

/** What differs between the message and what came of running it. */
export const compare = (
  work: Work,
  ran: Pick<ExecutedFlashblock, "gasUsed" | "bloom" | "encodedReceipts">,
): UnverifiedReason | undefined => {
  if (ran.gasUsed !== work.told.gasUsed) return "gas";
  if (formatData(ran.bloom) !== work.told.logsBloom) return "bloom";
  return orderedTrieRoot(ran.encodedReceipts) === work.told.receiptsRoot ? undefined : "receiptsRoot";
};
