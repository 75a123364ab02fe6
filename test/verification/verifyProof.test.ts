import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError, UnverifiedError } from "../../src/core/node.ts";
import type { RpcRequest } from "../../src/core/rpcSource.ts";
import { type BlockHeader, formatHeader, hashHeader } from "../../src/ethereum/blockHeader.ts";
import { createBloom } from "../../src/ethereum/bloom.ts";
import { formatQuantity, type Hash, ZERO_ADDRESS, ZERO_HASH } from "../../src/ethereum/hex.ts";
import { EMPTY_CODE_HASH } from "../../src/ethereum/keccak.ts";
import { type Call, createCall } from "../../src/jsonrpc/call.ts";
import { checkBody, type ResponseChecks } from "../../src/verification/checkBody.ts";
import { Evidence } from "../../src/verification/evidence.ts";
import { Verifier, type VerifyLevel } from "../../src/verification/verifier.ts";
import { evidenceNodes } from "../support/builders/evidenceNodes.ts";
import { createProvenState, slotOf } from "../support/builders/provenState.ts";
import { createContext, createRequest } from "../support/builders/request.ts";
import { silent } from "../support/builders/silent.ts";

const ADDRESS = `0x${"11".repeat(20)}` as const;
const ABSENT = `0x${"22".repeat(20)}` as const;
const SLOTS = 300;
const NUMBER = 5n;

const stateWith = (balance: bigint) =>
  createProvenState(
    new Map([
      [
        ADDRESS,
        {
          ...{ nonce: 1n, balance, codeHash: EMPTY_CODE_HASH },
          slots: new Map(Array.from({ length: SLOTS }, (_, index) => [slotOf(index), BigInt(index + 1)])),
        },
      ],
    ]),
  );
const [state, otherState] = await Promise.all([stateWith(7n), stateWith(8n)]);

const header: BlockHeader = {
  ...{ parentHash: ZERO_HASH, sha3Uncles: ZERO_HASH, miner: ZERO_ADDRESS, stateRoot: state.stateRoot },
  ...{ transactionsRoot: ZERO_HASH, receiptsRoot: ZERO_HASH, logsBloom: createBloom(), difficulty: 0n },
  ...{ number: NUMBER, gasLimit: 30_000_000n, gasUsed: 0n, timestamp: 1_700_000_000n, extraData: "0x" },
  ...{ mixHash: ZERO_HASH, nonce: "0x0000000000000000", baseFeePerGas: 7n },
};
const HASH: Hash = hashHeader(header);
const BLOCK: Readonly<Record<string, unknown>> = formatHeader(header, HASH);

interface Options {
  readonly nodes?: readonly string[];
  readonly level?: VerifyLevel;
  /** The node's block by hash. */
  readonly block?: unknown;
}

/** A verifier of a chain, with the calls that it sent, the nodes that it reported, and the responses that a thread verified. */
const start = ({ nodes = ["only"], level = "full", block = BLOCK }: Options = {}) => {
  const sent: Call[] = [];
  const reported: string[] = [];
  const inThread: ResponseChecks[] = [];
  const evidence = new Evidence(
    {
      chain: "test",
      nodes: evidenceNodes(...nodes),
      off: [],
      onWrongAnswer: (node, check) => reported.push(`${node} ${check}`),
    },
    silent(),
  );
  const check = async (body: Uint8Array, checks: ResponseChecks) => {
    inThread.push(checks);
    return checkBody(body, checks);
  };
  const verifier = new Verifier(level, evidence, { check });
  const send = async (call: Call): Promise<Uint8Array> => {
    sent.push(call);
    return Buffer.from(JSON.stringify(block));
  };
  const verify = async (call: Call, request: RpcRequest, result: unknown, name = "only"): Promise<void> => {
    const body = Buffer.from(JSON.stringify(result));
    await verifier.verify({ node: { name, send }, call, request, context: createContext() }, body);
  };
  return { sent, reported, inThread, verify };
};

const proofCall = (at: unknown, address: string = ADDRESS, keys: readonly string[] = []): Call =>
  createCall("eth_getProof", [address, keys, at as never]);
const BY_HASH = proofCall({ blockHash: HASH });
const recent = (call: Call): RpcRequest =>
  createRequest({ ...call, retention: "recentState", block: { number: NUMBER, hash: HASH } });
const final = (call: Call): RpcRequest => ({ ...recent(call), retention: "final" });
const BY_NUMBER = proofCall(formatQuantity(NUMBER));

const honest = await state.proofOf(ADDRESS, []);
const LIE = { ...honest, balance: "0x8" };
const OF_OTHER_STATE = await otherState.proofOf(ADDRESS, []);

const isUnverified = (isCertain: boolean) => (error: unknown) =>
  error instanceof UnverifiedError && error.check === "proof" && error.isCertain === isCertain;
const isOtherBranch = (error: unknown) => error instanceof NodeError && error.kind === "otherBranch";

test("a proof by hash or of a final block must follow from the header, which is read once", async () => {
  const { verify, sent } = start();
  await verify(BY_HASH, recent(BY_HASH), honest);
  await verify(BY_NUMBER, final(BY_NUMBER), honest);
  for (const lie of [LIE, OF_OTHER_STATE]) {
    await assert.rejects(verify(BY_HASH, recent(BY_HASH), lie), isUnverified(true));
    await assert.rejects(verify(BY_NUMBER, final(BY_NUMBER), lie), isUnverified(true));
  }
  assert.deepEqual(
    sent.map(({ method, params }) => [method, ...params]),
    [["eth_getBlockByHash", HASH, false]],
  );
});

test("a wrong proof that an account is absent is refused, but counts against no node: some versions of Erigon return such ones", async () => {
  const { verify } = start();
  await verify(BY_HASH, recent(BY_HASH), honest);
  const call = proofCall({ blockHash: HASH }, ABSENT);
  const absence = await state.proofOf(ABSENT, []);
  await verify(call, recent(call), absence);
  const wrong = { ...absence, accountProof: [] };
  await assert.rejects(verify(call, recent(call), wrong), isUnverified(false));
  const ofOther = { ...wrong, address: ADDRESS };
  await assert.rejects(verify(call, recent(call), ofOther), isUnverified(true));
  await assert.rejects(verify(call, recent(call), { ...wrong, balance: "0x1" }), isUnverified(true));
});

test("a client's block hash outside the ring is verified too", async () => {
  const { verify } = start();
  for (const at of [{ blockHash: HASH }, { blockHash: HASH, requireCanonical: true }, HASH]) {
    const call = proofCall(at);
    const request = createRequest({ ...call, retention: "never" });
    await verify(call, request, honest);
    await assert.rejects(verify(call, request, LIE), isUnverified(true));
  }
});

test("a node that is asked by number may be on another branch: nothing counts against it, and its proof is not served", async () => {
  const { verify, reported } = start({ nodes: ["one", "two"] });
  // The encoding of the chain is not known yet.
  await verify(BY_NUMBER, recent(BY_NUMBER), OF_OTHER_STATE, "one");
  await verify(BY_HASH, recent(BY_HASH), honest, "two");
  await verify(BY_NUMBER, recent(BY_NUMBER), honest, "one");
  await assert.rejects(verify(BY_NUMBER, recent(BY_NUMBER), OF_OTHER_STATE, "one"), isOtherBranch);
  assert.deepEqual(reported, []);
});

test("the first lie counts once another node has the truth", async () => {
  const { verify, reported } = start({ nodes: ["liar", "honest"] });
  await assert.rejects(verify(BY_HASH, recent(BY_HASH), LIE, "liar"), isUnverified(false));
  assert.deepEqual(reported, []);
  await verify(BY_HASH, recent(BY_HASH), honest, "honest");
  assert.deepEqual(reported, ["liar proof"]);
  await assert.rejects(verify(BY_HASH, recent(BY_HASH), LIE, "liar"), isUnverified(true));
});

test("a chain whose proofs differ from the start is served as before", async () => {
  const { verify, sent } = start({ nodes: ["one", "two"] });
  // A right proof of an absent account is no evidence.
  const absentCall = proofCall({ blockHash: HASH }, ABSENT);
  await verify(absentCall, recent(absentCall), await state.proofOf(ABSENT, []), "one");
  await assert.rejects(verify(BY_HASH, recent(BY_HASH), LIE, "one"), isUnverified(false));
  await verify(BY_HASH, recent(BY_HASH), LIE, "two");
  await verify(BY_HASH, recent(BY_HASH), LIE, "one");
  const other = proofCall({ blockHash: ZERO_HASH });
  await verify(other, createRequest({ ...other, retention: "never" }), LIE, "one");
  assert.equal(sent.length, 1, "no header is read any more");
});

test("what no header can judge is served as before, without a call", async () => {
  const { verify, sent } = start();
  await verify(BY_HASH, recent(BY_HASH), honest);
  for (const [at, block] of [
    ["pending", undefined],
    ["finalized", undefined],
    ["0x5", { number: NUMBER }],
  ] as const) {
    const call = proofCall(at);
    await verify(call, createRequest({ ...call, retention: "never", ...(block && { block }) }), LIE);
  }
  assert.equal(sent.length, 1);
  const cheap = start({ level: "cheap" });
  await cheap.verify(BY_HASH, recent(BY_HASH), LIE);
  assert.equal(cheap.sent.length, 0);
});

test("a header whose hash cannot be computed proves nothing", async () => {
  const { verify } = start({ block: { ...BLOCK, l1BlockNumber: "0x1", stateRoot: ZERO_HASH } });
  await verify(BY_HASH, recent(BY_HASH), honest);
  await verify(BY_HASH, recent(BY_HASH), LIE);
});

test("a node that has a proof and not the header of its block lacks the block", async () => {
  const { verify } = start({ block: null });
  const isMissing = (error: unknown) => error instanceof NodeError && error.kind === "missingData";
  await assert.rejects(verify(BY_HASH, recent(BY_HASH), honest), isMissing);
});

test("a proof of many slots is verified in a thread", async () => {
  const { verify, inThread } = start();
  const keys = Array.from({ length: SLOTS }, (_, index) => formatQuantity(index));
  const call = proofCall({ blockHash: HASH }, ADDRESS, keys);
  const proof = await state.proofOf(ADDRESS, keys);
  await verify(call, recent(call), proof);
  const [first, ...rest] = proof.storageProof;
  const lie = { ...proof, storageProof: [...rest, { ...first, value: "0x2" }] };
  await assert.rejects(verify(call, recent(call), lie), isUnverified(true));
  assert.deepEqual(
    inThread.map(({ kind }) => kind),
    ["proof", "proof"],
  );
  const few = proofCall({ blockHash: HASH }, ADDRESS, ["0x0"]);
  await verify(few, recent(few), await state.proofOf(ADDRESS, ["0x0"]));
  assert.equal(inThread.length, 2);
});
