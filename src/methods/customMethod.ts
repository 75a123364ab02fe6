import { isFields } from "../json/jsonBytes.ts";
import { blockNumberOrTagOrHash } from "./blockParams.ts";
import { blockRead } from "./blockRead.ts";
import { forwarded, type Method } from "./method.ts";
import { optional, readAny, required } from "./paramSpec.ts";
import { plainRead } from "./plainRead.ts";

/** A read that the operator describes: `chains[].customMethods`. `blockParam` is the index of the block parameter. */
export interface CustomMethod {
  readonly name: string;
  readonly retention: "constant" | "byHash" | "head" | "block" | "state" | "never";
  readonly blockParam?: number | undefined;
}

/** The parameters of a method whose parameters are not known. */
const MAX_PARAMS = 16;

const paramsAfter = (count: number) =>
  Array.from({ length: MAX_PARAMS - count }, (_, index) => optional(`parameter ${count + index}`, readAny));

const AT_BLOCK: ReadonlySet<string> = new Set(["block", "state"]);
const readsAtBlock = (label: CustomMethod["retention"]): label is "block" | "state" => AT_BLOCK.has(label);

const BLOCK_FIELDS: ReadonlySet<string> = new Set(["blockHash", "blockNumber", "requireCanonical"]);

/** Whether a block parameter says more than a block, such as the index of a transaction in it. */
const hasFurtherFields = (block: unknown): boolean =>
  isFields(block) && Object.keys(block).some((field) => !BLOCK_FIELDS.has(field));

/**
 * Creates a method that is cached like those of the table with the same retention. A node may need long for it. A call whose block
 * parameter says more than a block is forwarded unchanged.
 */
export const createCustomMethod = ({ name, retention, blockParam = 0 }: CustomMethod): Method => {
  if (!readsAtBlock(retention)) {
    return plainRead({ name, params: paramsAfter(0), retention, isSlow: true });
  }
  const before = Array.from({ length: blockParam }, (_, index) => required(`parameter ${index}`, readAny));
  const params = [...before, blockNumberOrTagOrHash, ...paramsAfter(blockParam + 1)];
  const read = blockRead({ name, params, kind: retention, isSlow: true });
  return {
    ...read,
    handle: (input) => (hasFurtherFields(input.call.params[blockParam]) ? forwarded(input) : read.handle(input)),
  };
};
