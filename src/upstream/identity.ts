import { type Hash, isHash, isQuantity, ZERO_HASH } from "../chain/hex.ts";
import { createCall } from "../jsonrpc/call.ts";
import { asText } from "./jsonScan.ts";
import type { UpstreamNode } from "./upstreamNode.ts";

export interface Identity {
  readonly chainId: bigint;
  readonly hash: Hash;
}

/** Two nodes are not of one chain, or not of the configured one: nothing can be served. */
export class ChainMismatchError extends Error {
  override readonly name = "ChainMismatchError";
}

/** A node told its chain id, but its genesis block cannot be read. */
export class GenesisMissingError extends Error {
  override readonly name = "GenesisMissingError";
}

const TIMEOUT_MS = 5_000;

const parseQuantity = (body: Uint8Array): bigint => {
  const value: unknown = JSON.parse(asText(body));
  if (!isQuantity(value)) {
    throw new Error("eth_chainId gave no quantity");
  }
  return BigInt(value);
};

/** A node's chain id and the hash of its genesis block (zero where it has not kept that block). */
export const readIdentity = async (node: UpstreamNode, signal: AbortSignal): Promise<Identity> => {
  const reach = { signal, deadlineMs: performance.now() + TIMEOUT_MS };
  const chainId = parseQuantity(await node.send(createCall("eth_chainId", []), reach));
  const body = await node.send(createCall("eth_getBlockByNumber", ["0x0", false]), reach).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new GenesisMissingError(`genesis block cannot be read: ${reason}`, { cause });
  });
  const block: unknown = JSON.parse(asText(body));
  const hash = typeof block === "object" && block !== null && "hash" in block ? block.hash : undefined;
  return { chainId, hash: isHash(hash) ? hash : ZERO_HASH };
};

export interface Known extends Identity {
  /** The node that said it first; undefined where the chain id was configured. */
  readonly node: string | undefined;
}

/** Throws where a node is not of the chain that is known so far. */
export const checkIdentity = (chain: string, known: Known, name: string, { chainId, hash }: Identity): void => {
  if (chainId !== known.chainId) {
    const before = known.node === undefined ? "is configured with" : `node "${known.node}" has`;
    throw new ChainMismatchError(
      `chain "${chain}": ${before} chain id ${known.chainId}, but node "${name}" has chain id ${chainId}`,
    );
  }
  if (known.hash !== ZERO_HASH && hash !== ZERO_HASH && hash !== known.hash) {
    throw new ChainMismatchError(
      `chain "${chain}": node "${known.node}" has genesis block ${known.hash}, but node "${name}" has ${hash} (chain id ${chainId})`,
    );
  }
};
