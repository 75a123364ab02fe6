import type { Address, Hash } from "../../ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../ethereum/keccak.ts";
import { WrongProof } from "../../ethereum/trieNode.ts";
import { asText, type Fields } from "../../json/jsonBytes.ts";
import { type ProvenAccount, UnknownAccount, verifyProof } from "../../verification/accountProof.ts";
import { checkHeader } from "../../verification/checkHeader.ts";
import { digitsOf, fieldsOf, isSame, MalformedField, numberOf } from "../../verification/jsonFields.ts";
import {
  type ClaimedWrites,
  type ProvenWrites,
  parseWitness,
  proveWrites,
} from "../../verification/witnessedWrites.ts";
import { DamagedRows } from "../store/packedRows.ts";
import { packWrites, unpackWrites } from "../store/packedWrites.ts";
import type { AccountWrites, BlockWrites, MutableWrites, Written } from "../writeSet.ts";
import type { WitnessJob, WriteSetJobOutput } from "./writeSetThread.ts";

const NOTHING = new Uint8Array(0);

/** Returns the state root of a header whose own hash was computed. Throws MalformedField for any other. */
const stateRootOf = (header: Fields, hash: unknown, number: bigint): Hash => {
  const isIt = typeof hash === "string" && isSame(header.hash, hash) && numberOf(header.number) === number;
  if (!isIt || checkHeader(header).outcome !== "passed") {
    throw new MalformedField("not the header of the block");
  }
  return `0x${digitsOf(header.stateRoot, 32)}`;
};

const known = <Value>(value: Written<Value> | undefined): Value | undefined =>
  value === "unknown" ? undefined : value;

/** Returns the hash of the claimed code, whatever hash a claim with a code names. */
const codeHashOf = ({ code, codeHash }: AccountWrites): Hash | undefined =>
  code instanceof Uint8Array ? keccak256Hex(code) : codeHash;

const claimOf = (writes: AccountWrites): ClaimedWrites => {
  const { nonce, balance, code, otherSlots, slots } = writes;
  const codeHash = codeHashOf(writes);
  const knownSlots = [...slots].flatMap(([slot, value]) => (value === "unknown" ? [] : [[slot, value] as const]));
  return {
    ...{ nonce: known(nonce), balance: known(balance), codeHash },
    isCleared: otherSlots === "cleared",
    slots: new Map(knownSlots),
    isOpen:
      nonce === "unknown" ||
      balance === "unknown" ||
      (code !== undefined && codeHash === undefined) ||
      otherSlots === "unknown" ||
      knownSlots.length < slots.size,
  };
};

/** Returns the code after the block: the claimed one if its hash is proven. */
const codeAfter = ({ codeHash }: ProvenAccount, { code }: AccountWrites): Written<Uint8Array> => {
  if (codeHash === EMPTY_CODE_HASH) {
    return NOTHING;
  }
  return code instanceof Uint8Array && keccak256Hex(code) === codeHash ? code : "unknown";
};

/** Returns which slots changed: those of the claim, all, or nobody knows which. */
const storageAfter = (
  { storage }: ProvenWrites,
  claimed: AccountWrites,
): Pick<MutableWrites, "otherSlots" | "slots"> => {
  if (storage === "claimed") {
    const { otherSlots, slots } = claimed;
    const knownSlots = [...slots].filter(([, value]) => value !== "unknown");
    return { ...(otherSlots === "cleared" && { otherSlots }), slots: new Map(knownSlots) };
  }
  return { ...(storage !== "nothing" && { otherSlots: storage }), slots: new Map() };
};

/** Returns what changed of an account. */
const writesOf = (proven: ProvenWrites, claimed: AccountWrites): AccountWrites => {
  const { before, after } = proven;
  return {
    ...(after.nonce !== before.nonce && { nonce: after.nonce }),
    ...(after.balance !== before.balance && { balance: after.balance }),
    ...(after.codeHash !== before.codeHash && { code: codeAfter(after, claimed), codeHash: after.codeHash }),
    ...storageAfter(proven, claimed),
  };
};

const leavesOf = (proofs: WitnessJob["proofs"], stateRoot: Hash): ReadonlyMap<Address, ProvenAccount> =>
  new Map(
    proofs.map(([address, proof]) => {
      const fields = fieldsOf(JSON.parse(asText(proof)));
      return [address, verifyProof({ stateRoot, address, keys: [] }, fields).account];
    }),
  );

const provenWrites = (claimed: BlockWrites, proven: ReadonlyMap<Address, ProvenWrites>): BlockWrites =>
  new Map(
    [...proven].map(([address, writes]) => [address, writesOf(writes, claimed.get(address) ?? { slots: new Map() })]),
  );

const prove = ({ block, header, parent, packed, witness, proofs }: WitnessJob): WriteSetJobOutput => {
  const stateRoot = stateRootOf(header, block.hash, block.number);
  const parentStateRoot = stateRootOf(parent, header.parentHash, block.number - 1n);
  const claimed = unpackWrites(packed);
  const claims = new Map([...claimed].map(([address, writes]) => [address, claimOf(writes)]));
  const nodes = parseWitness(fieldsOf(JSON.parse(asText(witness))));
  const leaves = leavesOf(proofs, stateRoot);
  const outcome = proveWrites({ parentStateRoot, stateRoot, nodes, claims, leaves });
  switch (outcome.kind) {
    case "proven":
      return { kind: "proven", packed: packWrites(provenWrites(claimed, outcome.writes)) };
    case "open":
      return { kind: "open", addresses: outcome.addresses };
    case "refused":
      return { kind: "unproven", reason: "refused" };
    case "missing":
      return { kind: "unproven", reason: "missing" };
  }
};

/**
 * Proves the claimed writes of a block by its execution witness (docs/reference/state.md, Execution witnesses). The result has only what is
 * proven: the values that changed, and slots as unknown where the claim does not have all of them.
 */
export const runWitness = (job: WitnessJob): WriteSetJobOutput => {
  try {
    return prove(job);
  } catch (error) {
    if (error instanceof DamagedRows) {
      return { kind: "unproven", reason: "refused" };
    }
    if (error instanceof UnknownAccount) {
      return { kind: "unproven", reason: "missing" };
    }
    if (error instanceof WrongProof || error instanceof MalformedField || error instanceof SyntaxError) {
      return { kind: "unproven", reason: "malformed" };
    }
    throw error;
  }
};
