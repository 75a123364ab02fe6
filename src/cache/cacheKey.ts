import { hash } from "node:crypto";
import type { Heads } from "../core/heads.ts";
import { RETENTION } from "../core/retention.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";

/** Increased when the meaning of keys or the form of values changes, so that old entries are misses. */
const FORMAT_VERSION = 1;

/** Longer canonical params are replaced by their SHA-256, so that an attacker cannot make two keys collide. */
const MAX_PARAMS_LENGTH = 128;

/** Creates the prefix of a chain's keys. The genesis hash separates a restarted devnet from the one before. */
export const createKeyPrefix = (chainId: bigint | number, genesisHash: Hash): string =>
  `forebay${FORMAT_VERSION}:${chainId}:${genesisHash.slice(2, 18).toLowerCase()}:`;

/**
 * Creates the key of a request, or undefined if its response must not be cached. Different requests never share a key:
 * no part before the canonical params contains a colon, and `#` marks hashed params.
 */
export const requestKey = (
  prefix: string,
  request: Pick<RpcRequest, "retention" | "block" | "canonicalParams">,
  heads: Heads,
): string | undefined => {
  const anchor = RETENTION[request.retention].keyAnchor(request.block, heads);
  return anchor === undefined ? undefined : prefix + anchor + formatParams(request.canonicalParams);
};

const formatParams = (canonicalParams: string): string =>
  canonicalParams.length <= MAX_PARAMS_LENGTH ? `:${canonicalParams}` : `#${hash("sha256", canonicalParams, "hex")}`;
