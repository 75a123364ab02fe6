import type { BlockId } from "../core/heads.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { isHash, isQuantity } from "../ethereum/hex.ts";
import { asText } from "../json/jsonBytes.ts";
import { elements, members } from "../json/members.ts";

const NAMES = {
  hash: { hash: "hash", number: "number" },
  blockHash: { hash: "blockHash", number: "blockNumber" },
  firstBlockHash: { hash: "blockHash", number: "blockNumber" },
} as const;

/** Returns the text of a string, or a number as a quantity: parity-style traces have `blockNumber` as a number. */
const scalarText = (value: Uint8Array): string => {
  const text = asText(value);
  return text.startsWith('"')
    ? text.slice(1, -1).toLowerCase()
    : /^\d+$/.test(text)
      ? `0x${BigInt(text).toString(16)}`
      : "";
};

/** Reads the block id from a response. It scans only the outermost members, or those of the first element. */
export const readResponseBlock = (body: Uint8Array, blockField: RpcRequest["blockField"]): BlockId | undefined => {
  if (blockField === undefined) {
    return undefined;
  }
  const object = blockField === "firstBlockHash" ? elements(body).next().value : body;
  const names = NAMES[blockField];
  let hash: string | undefined;
  let number: string | undefined;
  for (const { key, value } of object instanceof Uint8Array ? members(object) : []) {
    if (key === names.hash) {
      hash = scalarText(value);
    } else if (key === names.number) {
      number = scalarText(value);
    }
    if (hash !== undefined && number !== undefined) {
      break;
    }
  }
  return isHash(hash) && isQuantity(number) ? { hash, number: BigInt(number) } : undefined;
};

/** Whether a response is `null`, an empty list or empty data. A node may return these for a block that it does not have. */
export const isEmpty = (body: Uint8Array): boolean => body.length <= 4 && ["null", "[]", '"0x"'].includes(asText(body));
