import { type BlockParameter, parseBlockNumberOrTag, parseBlockNumberOrTagOrHash } from "../ethereum/blockParameter.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { type CanonicalJson, optional, type ParamSpec, type Parser, required } from "./paramSpec.ts";

/** The name of the block parameter. */
export const READ_BLOCK = "block";

/** Length of a hash in hex. A canonical number is shorter, because it has 63 bits. */
const HASH_LENGTH = 66;

/** Formats a block parameter in its canonical form, which can be parsed again without loss. */
export const formatBlockParameter = (block: BlockParameter): CanonicalJson => {
  if ("tag" in block) {
    return block.tag;
  }
  if ("number" in block) {
    return formatQuantity(block.number);
  }
  return block.requireCanonical ? { blockHash: block.hash, requireCanonical: true } : { blockHash: block.hash };
};

/** Returns the block parameter of a canonical form, which was validated when the form was created. */
export const blockOfCanonical = (value: CanonicalJson | undefined): BlockParameter => {
  if (typeof value !== "string") {
    return parseBlockNumberOrTagOrHash(value, READ_BLOCK);
  }
  if (!value.startsWith("0x")) {
    return parseBlockNumberOrTag(value, READ_BLOCK);
  }
  return value.length === HASH_LENGTH
    ? { hash: `0x${value.slice(2)}`, requireCanonical: false }
    : { number: BigInt(value) };
};

const readNumberOrTag: Parser = (value, name) => formatBlockParameter(parseBlockNumberOrTag(value, name));
/** A hash string stays a string, because not every node accepts both forms. */
const readNumberOrTagOrHash: Parser = (value, name) => {
  const block = parseBlockNumberOrTagOrHash(value, name);
  return typeof value === "string" && "hash" in block ? block.hash : formatBlockParameter(block);
};

export const blockNumberOrTag: ParamSpec = required(READ_BLOCK, readNumberOrTag);
export const blockNumberOrTagOrHash: ParamSpec = required(READ_BLOCK, readNumberOrTagOrHash);
/** An optional block parameter; the default is `latest` (docs/answers.md, Blocks and pending). */
export const stateBlock: ParamSpec = optional(READ_BLOCK, readNumberOrTagOrHash, "latest");
