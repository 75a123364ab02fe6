import type { CallScope } from "../../core/context.ts";
import type { BlockId } from "../../core/heads.ts";
import type { Call } from "../../jsonrpc/call.ts";

/** A node that a source asks. */
export interface SourceNode {
  readonly name: string;
  /** See UpstreamNode. */
  send(call: Call, scope: CallScope, options?: { readonly isVerified?: boolean }): Promise<Uint8Array>;
}

/** The nodes of one chain, as its sources use them. */
export interface SourceNodes {
  /** Returns the nodes that can be asked about the block, best first. */
  nodesFor(block: BlockId): readonly SourceNode[];
  blockTimeMs(): number;
}
