import { larger } from "../../ethereum/bigintOrder.ts";
import type { BlockGas } from "../engine.ts";
import { CODE_TOO_LARGE, INIT_CODE_TOO_LARGE, OUT_OF_GAS } from "../halts/haltText.ts";
import { CODE_SIZE_LIMIT, INIT_CODE_SIZE_LIMIT } from "./fastHalt.ts";
import type { ModuleResult } from "./fastResult.ts";

// Results since Amsterdam.

/** EIP-7954 */
const MAX_CODE_BYTES = 65_536;
const MAX_INIT_CODE_BYTES = 131_072;
/** Position of the length among the operands of RETURN, and of CREATE and CREATE2. The top is 0. */
const RETURNED_LENGTH = 1;
const INIT_CODE_LENGTH = 2;

/** Returns geth's text for code that is too large. geth names the size since EIP-7954. */
export const formatTooLarge = ({ code, lastStep }: ModuleResult): string | undefined => {
  const lengthAt = (position: number) => `code size ${lastStep?.stack[position]} limit`;
  switch (code) {
    case CODE_SIZE_LIMIT:
      return `${CODE_TOO_LARGE}: ${lengthAt(RETURNED_LENGTH)} ${MAX_CODE_BYTES}`;
    case INIT_CODE_SIZE_LIMIT:
      return `${OUT_OF_GAS}: ${INIT_CODE_TOO_LARGE}: ${lengthAt(INIT_CODE_LENGTH)} ${MAX_INIT_CODE_BYTES}`;
    default:
      return undefined;
  }
};

/** Returns the parts of the block's two sums of gas. `floor`: the minimum charge. */
export const blockGasOf = ({ stateGas, maxUsedGas }: ModuleResult, floor: bigint): BlockGas => ({
  execution: larger(maxUsedGas - stateGas, floor),
  state: stateGas,
});
