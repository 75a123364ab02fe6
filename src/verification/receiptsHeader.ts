import { isFields } from "../json/fields.ts";
import { checkHeader } from "./checkHeader.ts";
import type { ReceiptsHeader } from "./checkReceipts.ts";
import { bytesOf, isAbsent, MalformedField, numberOf } from "./jsonFields.ts";

const decoder = new TextDecoder();

/** Reads the header fields for the check of receipts from the JSON text of a block; undefined if it is no block. */
export const readReceiptsHeader = (body: Uint8Array): ReceiptsHeader | undefined => {
  const block: unknown = JSON.parse(decoder.decode(body));
  if (!isFields(block)) {
    return undefined;
  }
  try {
    return {
      hash: bytesOf(block.hash, 32),
      number: numberOf(block.number),
      receiptsRoot: bytesOf(block.receiptsRoot, 32),
      logsBloom: bytesOf(block.logsBloom, 256),
      sumsGasUsed: isAbsent(block.blockAccessListHash),
      isComputed: checkHeader(block).outcome === "passed",
    };
  } catch (error) {
    if (error instanceof MalformedField) {
      return undefined;
    }
    throw error;
  }
};
