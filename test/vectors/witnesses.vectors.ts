import assert from "node:assert/strict";
import { test } from "node:test";
import { type Address, type Data, formatData, type Hash, isAddress } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { numberBytes } from "../../src/ethereum/rlp.ts";
import type { Fields } from "../../src/json/jsonBytes.ts";
import { writesOfAccessList } from "../../src/state/sources/accessListWrites.ts";
import { runWriteSetJob } from "../../src/state/sources/writeSetTask.ts";
import type { WriteSetJobOutput } from "../../src/state/sources/writeSetThread.ts";
import { packWrites, unpackWrites } from "../../src/state/store/packedWrites.ts";
import type { AccountWrites, BlockWrites, Written } from "../../src/state/writeSet.ts";
import { parseBlockAccessList } from "../../src/verification/blockAccessList.ts";
import { createChoices } from "../fuzz/engine/random.ts";
import { encodeJson, traceJob, writesOfJob } from "../state/sources/recordedBlocks.ts";
import { proveWith } from "../support/state/witnessCase.ts";
import { LIES, withLie } from "../support/state/witnessLies.ts";
import { createWitnessState, NotInWitness, type WitnessState } from "./witness.ts";
import { xzText } from "./xzText.ts";

interface Line {
  readonly block: number;
  readonly method: string;
  readonly params: readonly unknown[];
  readonly use?: string;
  readonly result: unknown;
}

interface WitnessedBlock {
  readonly header: Fields & { readonly number: string; readonly hash: Hash };
  readonly parent: Fields & { readonly stateRoot: Hash };
  readonly witness: { readonly state: readonly Data[]; readonly codes: readonly Data[] };
  readonly trace: readonly { readonly txHash: Hash; readonly result: Readonly<Record<"pre" | "post", Fields>> }[];
  readonly accessList: unknown;
  /** Proofs at the block, by account. */
  readonly proofs: ReadonlyMap<Address, unknown>;
}

const readBlocks = (file: string): readonly WitnessedBlock[] => {
  const lines = xzText(`proofs/${file}`)
    .trim()
    .split("\n")
    .map((line): Line => JSON.parse(line));
  return lines
    .filter(({ method }) => method === "debug_executionWitness")
    .map(({ block: number, result: witness }) => {
      const find = (wanted: string, at = number) =>
        lines.find(({ block, method, use }) => block === at && method === wanted && use?.includes("names") !== true)
          ?.result;
      const proofs = lines.filter(({ block, method }) => block === number && method === "eth_getProof");
      return {
        header: find("eth_getBlockByNumber") as WitnessedBlock["header"],
        parent: find("eth_getBlockByNumber", number - 1) as WitnessedBlock["parent"],
        witness: witness as WitnessedBlock["witness"],
        trace: find("debug_traceBlockByHash") as WitnessedBlock["trace"],
        accessList: find("eth_getBlockAccessList"),
        proofs: new Map(
          proofs.flatMap(({ params: [address], result }) => (isAddress(address) ? [[address, result] as const] : [])),
        ),
      };
    });
};

/** The accounts whose proofs were needed, and were not recorded. */
const prove = (block: WitnessedBlock, claim: BlockWrites, missing = new Set<Address>()): Promise<WriteSetJobOutput> =>
  proveWith(
    {
      kind: "witness",
      block: { number: BigInt(block.header.number), hash: block.header.hash },
      ...{ header: block.header, parent: block.parent, packed: packWrites(claim), proofs: [] },
      witness: encodeJson(block.witness),
    },
    (address) => {
      if (!block.proofs.has(address)) {
        missing.add(address);
      }
      return block.proofs.get(address) ?? null;
    },
  );

const provenOf = (output: WriteSetJobOutput): BlockWrites => {
  assert.equal(output.kind, "proven", JSON.stringify(output).slice(0, 300));
  return unpackWrites(output.kind === "proven" ? output.packed : new Uint8Array(0));
};

/** The claim of a trace with all calls. A call trace was not recorded: this one names no account that the diffs leave out. */
const tracedClaim = ({ header, trace }: WitnessedBlock): BlockWrites => {
  const calls = trace.map(({ txHash, result: { pre, post } }) => {
    const creations = Object.entries(post).flatMap(([address, after]) => {
      const nonces = [after, pre[address]].map((side) => Number((side as Fields | undefined)?.nonce ?? 0));
      return Array(Math.max(0, (nonces[0] ?? 0) - (nonces[1] ?? 0))).fill({ type: "CREATE", from: address });
    });
    return { txHash, result: { type: "CALL", calls: creations } };
  });
  return writesOfJob(traceJob({ block: header as never, trace: trace as never }, { calls: encodeJson(calls) }));
};

/** The state before the block, as an independent reader of the witness sees it. */
const stateBefore = ({ parent, witness }: WitnessedBlock): WitnessState =>
  createWitnessState({ root: parent.stateRoot, nodes: witness.state, codes: witness.codes });

const textOf = (value: Written<bigint | Uint8Array> | undefined): string =>
  value instanceof Uint8Array ? formatData(value) : String(value);

/** Returns what the state was before, or undefined if the witness does not have it: then the block did not touch it. */
const ifKnown = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch (error) {
    if (error instanceof NotInWitness) {
      return undefined;
    }
    throw error;
  }
};

/** Returns the values that are wrong after the block, compared with `truth`: all its writes. */
const wrongAfter = (state: WitnessState, truth: BlockWrites, proven: BlockWrites): readonly string[] =>
  [...new Set([...truth.keys(), ...proven.keys()])].flatMap((address) => {
    const none: AccountWrites = { slots: new Map() };
    const [is, own] = [truth.get(address) ?? none, proven.get(address) ?? none];
    const was = ifKnown(() => state.account(address));
    const before = { balance: was?.balance ?? 0n, nonce: was?.nonce ?? 0n, codeHash: was?.codeHash ?? EMPTY_CODE_HASH };
    const fields = (["balance", "nonce", "codeHash"] as const).filter(
      (field) => textOf((own[field] ?? before[field]) as bigint) !== textOf((is[field] ?? before[field]) as bigint),
    );
    const slots = [...new Set([...is.slots.keys(), ...own.slots.keys()])].filter((slot) => {
      const old = ifKnown(() => state.slot(address, slot)) ?? numberBytes(0);
      const kept = own.otherSlots === "cleared" ? numberBytes(0) : old;
      const after = is.slots.get(slot) ?? (is.otherSlots === "cleared" ? numberBytes(0) : old);
      const isHidden = !own.slots.has(slot) && own.otherSlots === "unknown";
      return !isHidden && textOf(own.slots.get(slot) ?? kept) !== textOf(after);
    });
    return [...fields, ...slots].map((name) => `${address} ${name}`);
  });

const choices = createChoices(28, 0);

/** Tells each lie about several accounts of a claim. Returns how many were refused, and how many changed nothing. */
const tellLies = async (block: WitnessedBlock, claim: BlockWrites, truth: BlockWrites) => {
  const state = stateBefore(block);
  const told = { refused: 0, harmless: 0 };
  const addresses = [...claim.keys()];
  for (const name of Object.keys(LIES)) {
    for (let count = 0; count < 5; count++) {
      const output = await prove(block, withLie(claim, name, choices.pick(addresses), choices));
      if (output.kind === "proven") {
        assert.deepEqual(wrongAfter(state, truth, unpackWrites(output.packed)), [], name);
        told.harmless++;
      } else {
        told.refused++;
      }
    }
  }
  return told;
};

for (const block of readBlocks("amsterdam.jsonl.xz")) {
  const number = Number(block.header.number);
  const listed = writesOfAccessList(parseBlockAccessList(block.accessList));

  test(`witnesses/amsterdam ${number}: the list is proven, and no lie about it`, async (t) => {
    const proven = provenOf(await prove(block, listed));
    assert.deepEqual(wrongAfter(stateBefore(block), listed, proven), []);
    assert.ok([...proven.values()].every(({ otherSlots }) => otherSlots === undefined));
    const { refused, harmless } = await tellLies(block, listed, listed);
    t.diagnostic(`${refused} lies refused, ${harmless} harmless`);
    assert.ok(refused > 40, `${refused}`);
  });

  test(`witnesses/amsterdam ${number}: the trace is proven, unless it leaves out an account`, async (t) => {
    const claim = tracedClaim(block);
    const missing = new Set<Address>();
    const output = await prove(block, claim, missing);
    const isLeftOut = [...listed].some(
      ([address, { balance }]) => typeof balance === "bigint" && balance > 0n && !claim.has(address),
    );
    t.diagnostic(`${output.kind}, ${missing.size} proofs not recorded`);
    if (output.kind === "proven") {
      assert.deepEqual(wrongAfter(stateBefore(block), listed, unpackWrites(output.packed)), []);
    }
    assert.equal(output.kind, isLeftOut ? "unproven" : "proven");
  });
}

for (const block of readBlocks("osaka.jsonl.xz")) {
  const number = Number(block.header.number);
  test(`witnesses/osaka ${number}: the trace is proven, and no lie about it`, async (t) => {
    const claim = tracedClaim(block);
    const missing = new Set<Address>();
    const proven = provenOf(await prove(block, claim, missing));
    assert.deepEqual([...missing], []);
    for (const [address, value] of block.proofs) {
      const { balance, nonce, codeHash } = value as { balance: string; nonce: string; codeHash: Hash };
      const writes = proven.get(address);
      assert.equal(writes?.balance ?? BigInt(balance), BigInt(balance), address);
      assert.equal(writes?.nonce ?? BigInt(nonce), BigInt(nonce), address);
      assert.ok(writes?.codeHash === undefined || BigInt(codeHash) === 0n || writes.codeHash === codeHash, address);
    }
    const { refused, harmless } = await tellLies(block, claim, proven);
    t.diagnostic(`${refused} lies refused, ${harmless} harmless`);
    // A lie about the hash of a code is harmless if the claim has the code.
    assert.ok(refused > 5, `${refused}`);
  });
}

test("witnesses: a job fails closed for each node of a witness that is left out", () => {
  const [block] = readBlocks("amsterdam.jsonl.xz");
  assert.ok(block !== undefined);
  const listed = writesOfAccessList(parseBlockAccessList(block.accessList));
  const { state } = block.witness;
  const kinds = new Map<string, number>();
  for (const index of state.keys()) {
    const output = runWriteSetJob({
      kind: "witness",
      block: { number: BigInt(block.header.number), hash: block.header.hash },
      ...{ header: block.header, parent: block.parent, packed: packWrites(listed), proofs: [] },
      witness: encodeJson({ state: state.toSpliced(index, 1) }),
    });
    const kind = output.kind === "unproven" ? output.reason : output.kind;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    if (output.kind === "proven") {
      assert.deepEqual(wrongAfter(stateBefore(block), listed, unpackWrites(output.packed)), []);
    }
  }
  assert.ok((kinds.get("missing") ?? 0) > 100, JSON.stringify([...kinds]));
  assert.ok(["missing", "proven"].every((kind) => kinds.has(kind)) && kinds.size === 2, JSON.stringify([...kinds]));
});
