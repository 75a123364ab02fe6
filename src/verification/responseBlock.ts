import type { BlockId } from "../core/heads.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import { isHash, isQuantity } from "../ethereum/hex.ts";
import { asText, elements, members } from "../json/jsonScan.ts";

const NAMES = {
  hash: { hash: "hash", number: "number" },
  blockHash: { hash: "blockHash", number: "blockNumber" },
  firstBlockHash: { hash: "blockHash", number: "blockNumber" },
} as const;

/** A string's text, or a plain number's as a quantity: parity-style traces give `blockNumber` so. */
const scalar = (value: Uint8Array): string => {
  const text = asText(value);
  return text.startsWith('"')
    ? text.slice(1, -1).toLowerCase()
    : /^\d+$/.test(text)
      ? `0x${BigInt(text).toString(16)}`
      : "";
};

/** The block that an answer says it is of; only its outermost members (or its first element's) are looked at. */
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
      hash = scalar(value);
    } else if (key === names.number) {
      number = scalar(value);
    }
    if (hash !== undefined && number !== undefined) {
      break;
    }
  }
  return isHash(hash) && isQuantity(number) ? { hash, number: BigInt(number) } : undefined;
};

/** `null`, an empty list or empty data: what a node also says of a block that it does not have. */
export const isEmpty = (body: Uint8Array): boolean => body.length <= 4 && ["null", "[]", '"0x"'].includes(asText(body));
