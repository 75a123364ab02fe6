import { isNull } from "../core/isNull.ts";
import { parseBlockNumberOrTagOrHash } from "../ethereum/blockParameter.ts";
import { atPending } from "./atPending.ts";
import { READ_BLOCK } from "./blockParams.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import { retryOnBranchChange } from "./branchRetry.ts";
import { headerNotFound, throwUnknownBlock } from "./headerNotFound.ts";
import type { Method } from "./method.ts";
import { parseParams } from "./parseParams.ts";
import { type BlockReadInput, requestAtBlock } from "./requestAtBlock.ts";
import { type ResolvedBlock, resolveBlock } from "./resolveBlock.ts";

/** Creates a method that reads at a block. */
export const blockRead = (spec: BlockReadSpec): Method => {
  const position = spec.params.findIndex(({ name }) => name === READ_BLOCK);
  return {
    name: spec.name,
    retention: spec.kind,
    atPending: spec.pending ? "view" : "node",
    handle: async (input) => {
      const values = parseParams(input.call.params, spec.params);
      const parameter = parseBlockNumberOrTagOrHash(values[position], READ_BLOCK);
      const read: BlockReadInput = { spec, values, position, parameter };
      let { context } = input;
      let resolved = resolveBlock(parameter, context.view.heads);
      if (resolved.kind === "aboveHead") {
        const heads = await input.chain.heads.refresh();
        if (heads !== context.view.heads) {
          context = { ...context, view: { heads } };
        }
        resolved = resolveBlock(parameter, heads);
      }
      const { reads } = input.chain;
      const readAt = (block: ResolvedBlock) => reads.request(requestAtBlock(read, block), context);
      if (resolved.kind === "pending") {
        return atPending(spec, input, values, readAt);
      }
      if (resolved.kind !== "recent") {
        return spec.kind === "state" ? readAt(resolved).catch(throwUnknownBlock) : readAt(resolved);
      }
      const response = await retryOnBranchChange(input.chain, context, (current) => {
        const block = current === context ? resolved : resolveBlock(parameter, current.view.heads);
        return reads.request(requestAtBlock(read, block), current);
      });
      // The block is in the view, so that `null` is wrong.
      if (spec.nullIsError && isNull(response)) {
        throw headerNotFound();
      }
      return response;
    },
  };
};
