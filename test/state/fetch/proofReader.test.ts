import assert from "node:assert/strict";
import { test } from "node:test";
import { abortReason } from "../../../src/core/lazySignal.ts";
import { NodeError } from "../../../src/core/node.ts";
import type { RpcResponse, RpcSource } from "../../../src/core/rpcSource.ts";
import { type Address, formatWord, type Hash, ZERO_HASH } from "../../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../../src/ethereum/keccak.ts";
import { formatJson } from "../../../src/json/jsonBytes.ts";
import { ProofReader } from "../../../src/state/fetch/proofReader.ts";
import type { StateKey } from "../../../src/state/stateKey.ts";
import { createHeads } from "../../support/builders/heads.ts";
import { createContext } from "../../support/builders/request.ts";

const ADDRESS: Address = `0x${"ab".repeat(20)}`;
const KEY: StateKey = { field: "balance", address: ADDRESS, slot: undefined };
const heads = { ...createHeads({ latest: 5 }), header: () => ({ blockAccessListHash: ZERO_HASH }) };
const block = heads.latest;
const PROOF: RpcResponse = {
  body: formatJson({ balance: "0x7", nonce: "0x0", codeHash: EMPTY_CODE_HASH, storageProof: [] }),
  status: { fwd: "miss" },
  block,
  grade: "proven",
};

const createReader = (request: RpcSource["request"]) =>
  new ProofReader({
    ...{ reads: { request }, heads: { current: () => heads }, isAllowed: true, unitsOf: () => 1, timeoutMs: 5_000 },
    signal: new AbortController().signal,
  });

/** A node that answers when `answer` is called, unless the request has ended. */
const createNode = () => {
  const answer = Promise.withResolvers<RpcResponse>();
  let requests = 0;
  const request: RpcSource["request"] = (_, context) => {
    requests++;
    const ended = new Promise<never>((_resolve, reject) =>
      context.signal.addEventListener("abort", () => reject(abortReason(context))),
    );
    return Promise.race([answer.promise, ended]);
  };
  return { request, answer: () => answer.resolve(PROOF), requests: () => requests };
};

test("a client that leaves takes the proof from no other client that waits for it", async () => {
  const { request, answer, requests } = createNode();
  const reader = createReader(request);
  const leaving = new AbortController();
  const first = reader.read([KEY], block, createContext({ signal: leaving.signal }));
  const second = reader.read([KEY], block, createContext());
  leaving.abort(new Error("disconnected"));
  assert.deepEqual(await first, []);
  answer();
  const [proven] = await second;
  assert.equal(proven?.values.find(([{ field }]) => field === "balance")?.[1], "7".padStart(64, "0"));
  assert.equal(requests(), 1);
});

test("clients that leave are no reason to request no proofs, and nodes without proofs are", async () => {
  const { request } = createNode();
  const reader = createReader(request);
  for (let times = 0; times < 20; times++) {
    const leaving = new AbortController();
    const read = reader.read([KEY], block, createContext({ signal: leaving.signal }));
    leaving.abort(new Error("disconnected"));
    assert.deepEqual(await read, []);
  }
  assert.equal(reader.isWanted(block), true);
  const without = createReader(() => Promise.reject(new NodeError("unsupportedMethod", "node", "no such method")));
  assert.deepEqual(await without.read([KEY], block, createContext()), []);
  assert.equal(without.isWanted(block), false);
});

test("250 slots are proven at once, and after a refusal 100 at once, without another refusal", async () => {
  const sizes: number[] = [];
  const reader = createReader(async ({ params }) => {
    const slots = params[1] as readonly Hash[];
    sizes.push(slots.length);
    if (slots.length > 200) {
      throw new NodeError("invalidParams", "node", "too many slots (max 200)");
    }
    const storageProof = slots.map((key) => ({ key, value: "0x1", proof: [] }));
    const account = { balance: "0x7", nonce: "0x0", codeHash: EMPTY_CODE_HASH, storageProof };
    return { ...PROOF, body: formatJson(account) };
  });
  const keys = Array.from(
    { length: 260 },
    (_, slot): StateKey => ({
      ...{ field: "slot", address: ADDRESS },
      slot: formatWord(BigInt(slot)),
    }),
  );
  assert.equal(reader.unitsFor(keys), 2);
  for (let turn = 0; turn < 9; turn++) {
    const proven = await reader.read(keys, block, createContext());
    const slots = proven.flatMap(({ values }) => values.filter(([{ field }]) => field === "slot"));
    assert.deepEqual([slots.length, reader.unitsFor(keys), reader.isWanted(block)], [keys.length, 3, true]);
  }
  assert.deepEqual(sizes.slice(0, 8), [250, 10, 100, 100, 60, 100, 100, 60]);
});
