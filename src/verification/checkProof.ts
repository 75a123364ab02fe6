import { WrongProof } from "../ethereum/trieNode.ts";
import { type Fields, isFields } from "../json/jsonBytes.ts";
import {
  NO_ACCOUNT,
  type ProofRequest,
  type ProvenAccount,
  type ProvenSlot,
  UnknownAccount,
  verifyProof,
} from "./accountProof.ts";
import { type Finding, failed, passed, uncomputable } from "./findings.ts";
import { ifWellFormed, isAbsent, isSame, MalformedField, quantityOf } from "./jsonFields.ts";

const NOTHING = /^0x0*$/;

/** Nodes pad numbers, and some write zero as `0x`. */
const isValue = (field: unknown, proven: bigint): boolean =>
  field === "0x" ? proven === 0n : quantityOf(field) === proven;

/** geth writes zeros for the hashes of an account that does not exist. */
const isHashOf = (field: unknown, proven: string, ofNothing: boolean): boolean =>
  ofNothing && (isAbsent(field) || (typeof field === "string" && NOTHING.test(field))) ? true : isSame(field, proven);

const hasFields = (fields: Fields, { exists, nonce, balance, storageHash, codeHash }: ProvenAccount): boolean =>
  isValue(fields.nonce, nonce) &&
  isValue(fields.balance, balance) &&
  isHashOf(fields.storageHash, storageHash, !exists) &&
  isHashOf(fields.codeHash, codeHash, !exists);

/**
 * Whether the response says that this account is absent. Versions of Erigon before 2026 prove that wrongly for some accounts
 * (erigontech/erigon, issue 17801), so such a proof is no evidence of a lie.
 */
export const claimsAbsence = (value: unknown, address: string): boolean => {
  if (!isFields(value) || !(isAbsent(value.address) || isSame(value.address, address))) {
    return false;
  }
  return ifWellFormed(() => hasFields(value, NO_ACCOUNT), false);
};

/** The checks of a response to eth_getProof. */
export interface ProofChecks {
  readonly kind: "proof";
  readonly request: ProofRequest;
}

const isSlot = ({ fields, value }: ProvenSlot): boolean => isValue(fields.value, value);

/**
 * Checks that a response to eth_getProof follows from the state root, and that the fields beside the proof are its values. Returns
 * no finding for the right proof of an absent account: it is no evidence for the chain's encoding of accounts.
 */
export const checkProof = (fields: Fields, request: ProofRequest): readonly Finding[] => {
  try {
    const { account, slots } = verifyProof(request, fields);
    const isOfAddress = isAbsent(fields.address) || isSame(fields.address, request.address);
    if (!isOfAddress || !hasFields(fields, account) || !slots.every(isSlot)) {
      return [failed("proof")];
    }
    return account.exists ? [passed("proof")] : [];
  } catch (error) {
    if (error instanceof UnknownAccount) {
      return [uncomputable("proof")];
    }
    if (error instanceof WrongProof || error instanceof MalformedField) {
      return [failed("proof")];
    }
    throw error;
  }
};
