import { UnverifiedError } from "../core/node.ts";
import { RETENTION } from "../core/retention.ts";
import { type Data, type Hash, isAddress, isHash } from "../ethereum/hex.ts";
import { parseJson } from "../json/jsonBytes.ts";
import {
  type Checker,
  lacksHeader,
  ofOtherBranch,
  STATED,
  type VerifiedCall,
  type VerifiedResponse,
} from "./checker.ts";
import { claimsAbsence } from "./checkProof.ts";
import { blockHashOf, type ExpectedLocation } from "./expectedLocation.ts";

/** The state that a response to eth_getProof must prove. */
interface ExpectedProof {
  readonly location: ExpectedLocation & { readonly hash: Hash };
  readonly address: Data;
  readonly keys: readonly string[];
  /** The call names its block by hash, or the block is final. If not, the node may answer of another branch. */
  readonly isBound: boolean;
}

/** Returns undefined if the hash of the block is not known: it is pending, or older than the block ring. */
const expectedProof = ({
  call: {
    params: [address, keys, at],
  },
  request: { block, retention },
}: VerifiedCall): ExpectedProof | undefined => {
  const named = blockHashOf(at) ?? at;
  const hash = isHash(named) ? named : block?.hash;
  if (!isAddress(address) || !Array.isArray(keys) || hash === undefined) {
    return undefined;
  }
  const location = { hash, ...(block !== undefined && { number: block.number }) };
  const isBound = isHash(named) || RETENTION[retention].branchAnchor === "finalized";
  return { location, address, keys: keys.map(String), isBound };
};

/** The proof of a node that may be on another branch is compared only if forebay knows the chain's encoding. */
const canCompare = ({ evidence }: Checker, isBound: boolean): boolean =>
  !evidence.isOff("header") && !evidence.isOff("proof") && (isBound || evidence.hasPassed("proof"));

/** Verifies a proof by the state root of its block. It is served as it is if no such root is known. */
export const verifyStateProof = async (
  checker: Checker,
  verifiedCall: VerifiedCall,
  body: Uint8Array,
): Promise<VerifiedResponse> => {
  const { node, context } = verifiedCall;
  const expected = expectedProof(verifiedCall);
  if (expected === undefined || !canCompare(checker, expected.isBound)) {
    return checker.checkForm(verifiedCall, body);
  }
  const { location, address, keys } = expected;
  const header = await checker.readHeader(node, location, context);
  if (header === undefined) {
    throw lacksHeader(node, "a proof");
  }
  const { stateRoot, isComputed } = header;
  if (!isComputed || stateRoot === undefined) {
    return checker.checkForm(verifiedCall, body);
  }
  try {
    const checks = { kind: "proof", request: { stateRoot, address, keys } } as const;
    const { isVerified, hasFindings } = await checker.check(verifiedCall, body, checks);
    // The right proof of an absent account is no finding. It proves something if forebay knows the chain's encoding.
    const isProof = checker.evidence.hasPassed("proof") && (isVerified || !hasFindings);
    return isProof ? { grade: "proven", block: { number: header.number, hash: location.hash } } : STATED;
  } catch (error) {
    throw errorOf(error, verifiedCall, body, expected);
  }
};

/** Returns what to throw for a failed check. A proof of another branch, or of an absent account, does not count against the node. */
const errorOf = (
  error: unknown,
  { node, call }: VerifiedCall,
  body: Uint8Array,
  { address, isBound }: ExpectedProof,
): unknown => {
  if (!(error instanceof UnverifiedError) || error.check !== "proof") {
    return error;
  }
  if (!isBound) {
    return ofOtherBranch(node, call);
  }
  return claimsAbsence(parseJson(body), address) ? new UnverifiedError(node.name, "proof", false) : error;
};
