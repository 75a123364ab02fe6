import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { workerEntry } from "../../../src/app/workerEntry.ts";
import type { HeaderFields } from "../../../src/core/heads.ts";
import { NodeError } from "../../../src/core/node.ts";
import { ListSource } from "../../../src/state/sources/listSource.ts";
import type { SourceNode } from "../../../src/state/sources/sourceNodes.ts";
import { WriteSetThread } from "../../../src/state/sources/writeSetThread.ts";
import { unpackWrites } from "../../../src/state/store/packedWrites.ts";
import { compareTruth } from "../../support/state/stateTruth.ts";
import { encodeJson, formatAccessList, readRecorded } from "./recordedBlocks.ts";

const SIGNAL = new AbortController().signal;
const RECORDED = readRecorded("requestsGethAmsterdam");
const BLOCK = { number: BigInt(RECORDED.block.number), hash: RECORDED.block.hash };
const LIST = formatAccessList(RECORDED.accessList ?? "0xc0");
const BY_HASH = "eth_getBlockAccessListByBlockHash";

/** A node that knows one spelling of the method, or none. */
const createListNode = (name: string, method: string | undefined, list: unknown = LIST) => {
  const asked: string[] = [];
  const node: SourceNode = {
    name,
    send: async (call) => {
      asked.push(call.method);
      if (call.method !== method) {
        throw new NodeError("unsupportedMethod", name, "the method does not exist", { code: -32_601 });
      }
      return encodeJson(list);
    },
  };
  return { node, asked };
};

const createSource = (
  t: TestContext,
  nodes: readonly SourceNode[],
  header: HeaderFields | undefined = RECORDED.block,
) => {
  const thread = new WriteSetThread({ entry: workerEntry("writeSets"), onFailure: (error) => assert.fail(error) });
  t.after(() => thread.close());
  return new ListSource({
    thread,
    nodesFor: () => nodes,
    blockTimeMs: () => 20_000,
    headerOf: () => header,
    unitsOf: () => 20,
  });
};

test("a write set is read from the access list that the header commits to, in either spelling of the method", async (t) => {
  for (const method of ["eth_getBlockAccessList", BY_HASH]) {
    const { node, asked } = createListNode("one", method);
    const source = createSource(t, [node]);
    const writeSet = await source.read(BLOCK, SIGNAL);
    assert.ok(typeof writeSet !== "string", String(writeSet));
    const { wrong, missed, unknown } = compareTruth(unpackWrites(writeSet.packed), RECORDED.before, RECORDED.after);
    assert.deepEqual({ wrong, missed, unknown }, { wrong: [], missed: [], unknown: 0 });
    asked.length = 0;
    await source.read(BLOCK, SIGNAL);
    assert.deepEqual(asked, [method], "the spelling is learned");
  }
});

test("without the header's field no node is asked", async (t) => {
  const { node, asked } = createListNode("one", BY_HASH);
  const { blockAccessListHash: _, ...header } = RECORDED.block;
  assert.equal(await createSource(t, [node], header).read(BLOCK, SIGNAL), "unsupported");
  assert.deepEqual(asked, []);
});

test("a wrong list of one node does not prevent the right one of another", async (t) => {
  const wrong = createListNode("one", BY_HASH, []);
  const right = createListNode("two", BY_HASH);
  assert.equal(await createSource(t, [wrong.node]).read(BLOCK, SIGNAL), "mismatch");
  assert.equal(typeof (await createSource(t, [wrong.node, right.node]).read(BLOCK, SIGNAL)), "object");
});

test("nodes without the method are asked once", async (t) => {
  const { node, asked } = createListNode("one", undefined);
  const source = createSource(t, [node]);
  assert.equal(await source.read(BLOCK, SIGNAL), "unsupported");
  assert.equal(await source.read(BLOCK, SIGNAL), "unsupported");
  assert.equal(asked.length, 2);
});
