import { hash } from "node:crypto";
import type { Heads } from "../core/heads.ts";
import type { RpcRequest } from "../core/rpcSource.ts";
import type { Hash } from "../ethereum/hex.ts";

/** Raised when the meaning of a key or the form of a kept value changes: old entries are then not found. */
const FORMAT_VERSION = 1;

/** A subject above this length is replaced by its SHA-256: an attacker must not be able to make two of them meet. */
const MAX_PARAMS_LENGTH = 128;

/** What every key of a chain begins with. The genesis hash tells a restarted devnet from the one before. */
export const createKeyPrefix = (chainId: bigint | number, genesisHash: Hash): string =>
  `forebay${FORMAT_VERSION}:${chainId}:${genesisHash.slice(2, 18).toLowerCase()}:`;

/**
 * The key of a question, or undefined where its answer may not be kept. No part before the subject holds a colon, and a hashed
 * subject has another mark than a plain one: different questions never meet.
 */
export const requestKey = (prefix: string, question: RpcRequest, heads: Heads): string | undefined => {
  const anchor = requestAnchor(question, heads);
  return anchor === undefined ? undefined : prefix + anchor + formatParams(question.canonicalParams);
};

const requestAnchor = (question: RpcRequest, heads: Heads): string | undefined => {
  const { retention, block } = question;
  switch (retention) {
    case "constant":
      return "constant";
    case "byHash":
      return "byHash";
    case "byTransaction":
      return "byTransaction";
    case "head":
      return `head:${heads.latest.hash}`;
    case "final":
      if (block === undefined || heads.finalized === undefined || block.number > heads.finalized.number)
        return undefined;
      return `final:${block.number}`;
    case "recent":
    case "recentState":
      return block?.hash === undefined ? undefined : `${retention}:${block.number}:${block.hash}`;
    case "never":
      return undefined;
  }
};

const formatParams = (canonicalParams: string): string =>
  canonicalParams.length <= MAX_PARAMS_LENGTH ? `:${canonicalParams}` : `#${hash("sha256", canonicalParams, "hex")}`;
