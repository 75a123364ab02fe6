import { type Address, parseData, ZERO_ADDRESS } from "../ethereum/hex.ts";
import { keccak256 } from "../ethereum/keccak.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber, numberBytes } from "../ethereum/rlp.ts";
import type { Authorization } from "../ethereum/transaction.ts";
import { recoverAddress } from "./recoverAddress.ts";
import type { StateOverlay } from "./stateOverlay.ts";
import { isDelegation } from "./transactionChecks.ts";

const MAGIC = Uint8Array.of(0x05);
const MAX_NONCE = 2n ** 64n - 1n;
/** Half of the order of secp256k1, the largest valid `s` (EIP-2). */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;
const DELEGATION = Uint8Array.of(0xef, 0x01, 0x00);
const NOTHING = new Uint8Array(0);
/** The refund of an authorization if the account exists already: PER_EMPTY_ACCOUNT_COST - PER_AUTH_BASE_COST. */
const EXISTING_REFUND = 12_500n;

export interface Authorized {
  readonly refund: bigint;
  /** Addresses that become warm, including those of authorizations that were skipped after recovery. */
  readonly warm: readonly Address[];
}

/** Delegates accounts to the code of others and returns the gas refund. Skips invalid authorizations. Source: EIP-7702. */
export const applyAuthorizations = (
  state: StateOverlay,
  chainId: bigint,
  authorizations: readonly Authorization[],
): Authorized => {
  const warm: Address[] = [];
  let refund = 0n;
  for (const authorization of authorizations) {
    const authority = authorityOf(authorization, chainId);
    if (authority === undefined) {
      continue;
    }
    warm.push(authority);
    const code = state.codeOf(authority);
    if (code.length > 0 && !isDelegation(code)) {
      continue;
    }
    if (state.nonceOf(authority) !== authorization.nonce) {
      continue;
    }
    if (state.exists(authority)) {
      refund += EXISTING_REFUND;
    }
    state.setNonce(authority, authorization.nonce + 1n);
    const isRevoked = authorization.address === ZERO_ADDRESS;
    state.setCode(authority, isRevoked ? NOTHING : concatBytes([DELEGATION, parseData(authorization.address)]));
  }
  return { refund, warm };
};

export interface AuthorizationSigner {
  readonly authorization: Authorization;
  /** Undefined if the authorization is skipped before its account is read. */
  readonly signer: Address | undefined;
}

export const signerOf = (authorization: Authorization, chainId: bigint): AuthorizationSigner => ({
  authorization,
  signer: authorityOf(authorization, chainId),
});

/** Recovers the account that signed an authorization. Returns `undefined` for another chain or an invalid signature. */
const authorityOf = (authorization: Authorization, chainId: bigint): Address | undefined => {
  const { address, nonce, yParity, r, s } = authorization;
  if (authorization.chainId !== 0n && authorization.chainId !== chainId) {
    return undefined;
  }
  if (nonce >= MAX_NONCE || s > HALF_ORDER || yParity > 1n) {
    return undefined;
  }
  const signed = encodeList([
    encodeNumber(authorization.chainId),
    encodeBytes(parseData(address)),
    encodeNumber(nonce),
  ]);
  return recoverAddress(
    keccak256(concatBytes([MAGIC, signed])),
    yParity === 0n ? 0 : 1,
    numberBytes(r),
    numberBytes(s),
  );
};
