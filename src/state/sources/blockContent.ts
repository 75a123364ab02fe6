import type { BlockId } from "../../core/heads.ts";
import type { PendingEnvironment } from "../../core/view.ts";
import { type Data, formatData, type Hash, ZERO_HASH } from "../../ethereum/hex.ts";
import { asText } from "../../json/jsonBytes.ts";
import { checkBody } from "../../verification/checkBody.ts";
import { encodeRpcTransaction } from "../../verification/encodeRpcTransaction.ts";
import { bytesOf, dataOf, fieldsOf, isAbsent, listOf, numberOf } from "../../verification/jsonFields.ts";

/** The input of a block's execution, and the results that its header commits to. Plain data. */
export interface BlockContent {
  readonly environment: PendingEnvironment;
  readonly transactions: readonly Data[];
  readonly gasUsed: bigint;
  readonly logsBloom: Data;
  readonly receiptsRoot: Hash;
}

/**
 * Parses the JSON text of a block with whole transactions. Returns undefined if it is another block, or if its hash or
 * transactions cannot be verified. Throws MalformedField or SyntaxError.
 */
export const parseBlockContent = (body: Uint8Array, { number, hash }: BlockId): BlockContent | undefined => {
  const findings = checkBody(body, { kind: "block", location: { number, hash }, checksHashes: true });
  if (findings.length === 0 || findings.some(({ outcome }) => outcome !== "passed")) {
    return undefined;
  }
  const block = fieldsOf(JSON.parse(asText(body)));
  const { parentBeaconBlockRoot } = block;
  return {
    environment: {
      number,
      timestamp: numberOf(block.timestamp),
      gasLimit: numberOf(block.gasLimit),
      baseFeePerGas: numberOf(block.baseFeePerGas),
      feeRecipient: bytesOf(block.miner, 20),
      prevRandao: bytesOf(block.mixHash, 32),
      parentHash: bytesOf(block.parentHash, 32),
      parentBeaconBlockRoot: isAbsent(parentBeaconBlockRoot) ? ZERO_HASH : bytesOf(parentBeaconBlockRoot, 32),
      extraData: dataOf(block.extraData),
    },
    transactions: listOf(block.transactions).map((item) =>
      formatData(encodeRpcTransaction(fieldsOf(item)) ?? new Uint8Array(0)),
    ),
    gasUsed: numberOf(block.gasUsed),
    logsBloom: bytesOf(block.logsBloom, 256),
    receiptsRoot: bytesOf(block.receiptsRoot, 32),
  };
};
