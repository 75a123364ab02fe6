import { type BlockParameter, parseBlockNumberOrTag, parseBlockNumberOrTagOrHash } from "../ethereum/blockParameter.ts";
import { formatQuantity } from "../ethereum/hex.ts";
import { type CanonicalJson, optional, type ParamSpec, type Parser, required } from "./paramSpec.ts";

/** The name of the block parameter. */
export const READ_BLOCK = "block";

/** Formats a block parameter in its canonical form, which can be parsed again without loss. */
export const formatBlock = (block: BlockParameter): CanonicalJson => {
  if ("tag" in block) {
    return block.tag;
  }
  if ("number" in block) {
    return formatQuantity(block.number);
  }
  return block.requireCanonical ? { blockHash: block.hash, requireCanonical: true } : { blockHash: block.hash };
};

const readNumberOrTag: Parser = (value, name) => formatBlock(parseBlockNumberOrTag(value, name));
/** A hash string stays a string, because not every node accepts both forms. */
const readNumberOrTagOrHash: Parser = (value, name) => {
  const block = parseBlockNumberOrTagOrHash(value, name);
  return typeof value === "string" && "hash" in block ? block.hash : formatBlock(block);
};

export const blockNumberOrTag: ParamSpec = required(READ_BLOCK, readNumberOrTag);
export const blockNumberOrTagOrHash: ParamSpec = required(READ_BLOCK, readNumberOrTagOrHash);
/** An optional block parameter; the default is `latest` (docs/answers.md, Blocks and pending). */
export const stateBlock: ParamSpec = optional(READ_BLOCK, readNumberOrTagOrHash, "latest");
