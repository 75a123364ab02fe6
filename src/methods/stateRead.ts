import type { BlockId } from "../core/heads.ts";
import type { Hash } from "../ethereum/hex.ts";
import type { StateField } from "../state/stateKey.ts";
import type { StateMethod } from "../state/stateReads.ts";
import type { BlockReadSpec } from "./blockReadSpec.ts";
import type { CanonicalJson } from "./paramSpec.ts";
import type { ResolvedBlock } from "./resolveBlock.ts";

const hex = (value: CanonicalJson | undefined): Hash => `0x${String(value).slice(2)}`;

/** Returns the state value that a method reads. Its first parameter is the address, and that of a slot the second. */
export const stateRead = (method: StateMethod, field: StateField): NonNullable<BlockReadSpec["stateRead"]> => ({
  method,
  keyOf: (values) => ({ field, address: hex(values[0]), slot: field === "slot" ? hex(values[1]) : undefined }),
});

/** Whether the block is in the block ring, so that its hash is known. */
export const isInRing = (block: ResolvedBlock): block is ResolvedBlock & BlockId =>
  (block.kind === "recent" || block.kind === "final") && block.hash !== undefined;
