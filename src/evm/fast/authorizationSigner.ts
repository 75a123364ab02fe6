import { type Address, parseData } from "../../ethereum/hex.ts";
import { keccak256 } from "../../ethereum/keccak.ts";
import { concatBytes, encodeBytes, encodeList, encodeNumber, numberBytes } from "../../ethereum/rlp.ts";
import type { Authorization } from "../../ethereum/transaction.ts";
import { MAX_NONCE } from "../checks/transactionChecks.ts";
import { recoverAddress } from "../senders/recoverAddress.ts";

const MAGIC = Uint8Array.of(0x05);
/** Half of the order of secp256k1, the largest valid `s` (EIP-2). */
const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

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
