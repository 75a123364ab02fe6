import { formatHeader, hashHeader } from "../../../src/ethereum/blockHeader.ts";
import {
  type Address,
  type Data,
  formatWord,
  type Hash,
  parseData,
  ZERO_ADDRESS,
  ZERO_HASH,
} from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH, keccak256Hex } from "../../../src/ethereum/keccak.ts";
import { numberBytes } from "../../../src/ethereum/rlp.ts";
import type { Fields } from "../../../src/json/jsonBytes.ts";
import { runWriteSetJob } from "../../../src/state/sources/writeSetTask.ts";
import type { WitnessJob, WriteSetJobOutput } from "../../../src/state/sources/writeSetThread.ts";
import { packWrites } from "../../../src/state/store/packedWrites.ts";
import type { AccountWrites, BlockWrites } from "../../../src/state/writeSet.ts";
import { createProvenState, type ProvenState, type ProvenStateAccount } from "../builders/provenState.ts";

/** A whole state. An account without anything is not in it. Slots are not zero. */
export type World = ReadonlyMap<Address, ProvenStateAccount>;

export const NO_WORLD_ACCOUNT: ProvenStateAccount = {
  ...{ nonce: 0n, balance: 0n, codeHash: EMPTY_CODE_HASH, slots: new Map() },
};

/** A block that leads from one state to another, and what proves that. */
export interface WitnessCase {
  readonly before: World;
  readonly after: World;
  readonly header: Fields;
  readonly parent: Fields;
  readonly afterProofs: ProvenState;
  /** The nodes of all tries before the block. */
  readonly nodes: readonly Data[];
  /** The nodes on the paths of what the block changed. A removal may need others. */
  readonly pathNodes: readonly Data[];
}

const NUMBER = 8n;

/** Returns a header of the execution API that has its own hash. */
export const headerWith = (stateRoot: Data, number: bigint, parentHash: Hash): Fields & { readonly hash: Hash } => {
  const header = {
    ...{ parentHash, miner: ZERO_ADDRESS, stateRoot, number },
    ...{ transactionsRoot: ZERO_HASH, receiptsRoot: ZERO_HASH, logsBloom: new Uint8Array(256) },
    ...({ gasLimit: 30_000_000n, gasUsed: 0n, timestamp: 12n * number, extraData: "0x", mixHash: ZERO_HASH } as const),
    baseFeePerGas: 7n,
  };
  const hash = hashHeader(header);
  return { ...formatHeader(header, hash), hash };
};

const slotsOf = (world: World, address: Address): ReadonlyMap<Hash, bigint> => world.get(address)?.slots ?? new Map();
const unionOf = <Key>(...maps: readonly ReadonlyMap<Key, unknown>[]): readonly Key[] => [
  ...new Set(maps.flatMap((map) => [...map.keys()])),
];

/** Returns the nodes on the paths of accounts and slots. */
const nodesOnPaths = async (
  state: ProvenState,
  paths: Iterable<readonly [Address, readonly Hash[]]>,
): Promise<readonly Data[]> => {
  const nodes = new Set<Data>();
  for (const [address, slots] of paths) {
    const { accountProof, storageProof } = await state.proofOf(address, slots);
    for (const node of [...accountProof, ...storageProof.flatMap(({ proof }) => proof)]) {
      nodes.add(node);
    }
  }
  return [...nodes];
};

const isChanged = (one: ProvenStateAccount | undefined, other: ProvenStateAccount | undefined): boolean =>
  one?.nonce !== other?.nonce ||
  one?.balance !== other?.balance ||
  one?.codeHash !== other?.codeHash ||
  unionOf(one?.slots ?? new Map(), other?.slots ?? new Map()).some(
    (slot) => one?.slots.get(slot) !== other?.slots.get(slot),
  );

/** Creates the block between two states. */
export const createWitnessCase = async (before: World, after: World): Promise<WitnessCase> => {
  const [beforeProofs, afterProofs] = [await createProvenState(before), await createProvenState(after)];
  const parent = headerWith(beforeProofs.stateRoot, NUMBER - 1n, ZERO_HASH);
  const header = headerWith(afterProofs.stateRoot, NUMBER, parent.hash);
  const all = [...before].map(([address, { slots }]) => [address, [...slots.keys()]] as const);
  const changed = unionOf(before, after)
    .filter((address) => isChanged(before.get(address), after.get(address)))
    .map((address) => [address, unionOf(slotsOf(before, address), slotsOf(after, address))] as const);
  return {
    ...{ before, after, header, parent, afterProofs },
    nodes: await nodesOnPaths(beforeProofs, all),
    pathNodes: await nodesOnPaths(beforeProofs, changed),
  };
};

/** Returns all that the block changed, as the most complete claim has it. */
export const fullClaim = ({ before, after }: Pick<WitnessCase, "before" | "after">): BlockWrites => {
  const writes = new Map<Address, AccountWrites>();
  for (const address of unionOf(before, after)) {
    const [was, is] = [before.get(address) ?? NO_WORLD_ACCOUNT, after.get(address) ?? NO_WORLD_ACCOUNT];
    if (isChanged(before.get(address), after.get(address))) {
      const slots = unionOf(was.slots, is.slots).filter((slot) => was.slots.get(slot) !== is.slots.get(slot));
      writes.set(address, {
        ...(was.nonce !== is.nonce && { nonce: is.nonce }),
        ...(was.balance !== is.balance && { balance: is.balance }),
        ...(was.codeHash !== is.codeHash && { code: "unknown", codeHash: is.codeHash }),
        slots: new Map(slots.map((slot) => [slot, numberBytes(is.slots.get(slot) ?? 0n)])),
      });
    }
  }
  return writes;
};

const bytesAsNumber = (bytes: Uint8Array): bigint => (bytes.length === 0 ? 0n : BigInt(`0x${bytes.toHex()}`));

const wrongSlots = (was: ProvenStateAccount, is: ProvenStateAccount, writes: AccountWrites): readonly string[] =>
  unionOf(was.slots, is.slots, writes.slots).filter((slot) => {
    const written = writes.slots.get(slot);
    if (written === "unknown" || (written === undefined && writes.otherSlots === "unknown")) {
      return false;
    }
    const kept = writes.otherSlots === "cleared" ? 0n : (was.slots.get(slot) ?? 0n);
    return (written === undefined ? kept : bytesAsNumber(written)) !== (is.slots.get(slot) ?? 0n);
  });

const wrongOf = (was: ProvenStateAccount, is: ProvenStateAccount, writes: AccountWrites): readonly string[] => {
  const { code, codeHash } = writes;
  const isCodeWrong = code instanceof Uint8Array && keccak256Hex(code) !== codeHash;
  return [
    ...((writes.nonce ?? was.nonce) === is.nonce ? [] : ["nonce"]),
    ...((writes.balance ?? was.balance) === is.balance ? [] : ["balance"]),
    ...((codeHash ?? was.codeHash) === is.codeHash && !isCodeWrong ? [] : ["code"]),
    ...wrongSlots(was, is, writes),
  ];
};

/** Returns the values after the block that would be wrong if the values before it are carried over by these writes. */
export const wrongAfter = (
  { before, after }: Pick<WitnessCase, "before" | "after">,
  writes: BlockWrites,
): readonly string[] =>
  unionOf(before, after, writes).flatMap((address) => {
    const [was, is] = [before.get(address) ?? NO_WORLD_ACCOUNT, after.get(address) ?? NO_WORLD_ACCOUNT];
    return wrongOf(was, is, writes.get(address) ?? { slots: new Map() }).map((name) => `${address} ${name}`);
  });

/** Returns the job that proves a claim. `nodes`: of the witness. */
export const witnessJobOf = (
  { header, parent }: Pick<WitnessCase, "header" | "parent">,
  claim: BlockWrites,
  nodes: readonly unknown[],
): WitnessJob => ({
  kind: "witness",
  block: { number: NUMBER, hash: header.hash as Hash },
  ...{ header, parent, packed: packWrites(claim), proofs: [] },
  witness: Buffer.from(JSON.stringify({ state: nodes, codes: [], headers: [] })),
});

/** Runs the job, and again with the proofs of the accounts that are open. `proofOf` returns the JSON value of a proof. */
export const proveWith = async (
  job: WitnessJob,
  proofOf: (address: Address) => unknown,
): Promise<WriteSetJobOutput> => {
  const output = runWriteSetJob(job);
  if (output.kind !== "open") {
    return output;
  }
  const proofs: (readonly [Address, Uint8Array])[] = [];
  for (const address of output.addresses) {
    proofs.push([address, Buffer.from(JSON.stringify(await proofOf(address)) ?? "null")]);
  }
  return runWriteSetJob({ ...job, proofs });
};

export const slot = (number: number | bigint): Hash => formatWord(number);
export const addressAt = (number: number): Address => `0x${number.toString(16).padStart(40, "0")}`;
export const codeHashAt = (number: number): Hash =>
  keccak256Hex(parseData(`0x60${number.toString(16).padStart(2, "0")}`));
