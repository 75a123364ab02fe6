import { isHash } from "../ethereum/hex.ts";
import { boundResponse, type Checker, lacksHeader, type VerifiedCall, type VerifiedResponse } from "./checker.ts";
import { expectedLocation } from "./expectedLocation.ts";

/** Verifies a block access list by the hash in its header. A list without such a hash is served as it is. */
export const verifyAccessList = async (
  checker: Checker,
  verifiedCall: VerifiedCall,
  body: Uint8Array,
): Promise<VerifiedResponse> => {
  const { node, call, request, context } = verifiedCall;
  const location = expectedLocation(call, request);
  if (location === undefined) {
    return checker.checkForm(verifiedCall, body);
  }
  const header = await checker.readHeader(node, location, context);
  if (header === undefined) {
    throw lacksHeader(node, "an access list");
  }
  const { hash, number, accessListHash, isComputed } = header;
  if (!isComputed || accessListHash === undefined) {
    return checker.checkForm(verifiedCall, body);
  }
  const checked = await checker.check(verifiedCall, body, { kind: "accessList", hash: accessListHash });
  return boundResponse(checked, isHash(hash) ? { number, hash } : undefined, { location, context });
};
