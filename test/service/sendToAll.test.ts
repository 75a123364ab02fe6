import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 } from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { startAnvil } from "../devnet/anvil.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { until } from "../support/clients/until.ts";
import { createService, type Service } from "../support/servers/service.ts";
import {
  assertOnce,
  rawOf,
  sendThroughReplicas,
  startToAll,
  startWriteNodes,
  WRONG_HASH,
  type WriteBehaviour,
} from "../support/servers/writeNodes.ts";

const COUNT = 300;
const SENDER = mnemonicToAccount("test test test test test test test test test test test junk");

test("each of some transactions gets to three nodes once, and each client has its hash, through two replicas too", (t) =>
  sendThroughReplicas(t, COUNT));

test("a node that is private gets no transaction, and one of two public nodes may fail", async (t) => {
  const nodes = await startWriteNodes(t, ["accepts", "fails", "accepts"]);
  const service = await startToAll(
    t,
    nodes.map(({ node }, index) => ({ url: node.url, private: index === 2 })),
  );
  const { body } = await rpc(service.url, "eth_sendRawTransaction", [rawOf(1)]);
  assert.equal(body.result, keccak256(rawOf(1)));
  await assertOnce(nodes.slice(0, 2), 1);
  assert.equal(nodes[2]?.received.size, 0);
});

/** Creates signed transactions, whose type is known. */
const signedOf = (index: number) =>
  SENDER.signTransaction({ type: "eip1559", chainId: 1, nonce: index, gas: 21_000n, maxFeePerGas: 1n });

const suspended = ({ opsUrl }: Service): Promise<number> => metric(opsUrl, "forebay_upstream_suspended");

test("clients get the hash of their transactions although a node returns another one first, and it is suspended", async (t) => {
  const nodes = await startWriteNodes(t, ["lies", "late", "late"]);
  const service = await startToAll(
    t,
    nodes.map(({ node }) => ({ url: node.url })),
  );
  const raws = await Promise.all([0, 1, 2].map(signedOf));
  const answers = await Promise.all(raws.map((raw) => rpc(service.url, "eth_sendRawTransaction", [raw])));
  assert.deepEqual(
    answers.map(({ body }) => body.result ?? body.error),
    raws.map((raw) => keccak256(raw)),
  );
  assert.equal(await suspended(service), 1);
});

test("a wrong hash of the only node is an error, and that of a transaction that it has is corrected", async (t) => {
  const [liar] = await startWriteNodes(t, ["lies"]);
  assert.ok(liar);
  const service = await createService({ nodes: [{ url: liar.node.url }], verify: "cheap" });
  t.after(() => service.close());
  const send = async (index: number) =>
    (await rpc(service.url, "eth_sendRawTransaction", [await signedOf(index)])).body;
  assert.equal((await send(0)).error?.message, "the upstream response failed verification (transaction)");
  assert.equal(await suspended(service), 1);
  liar.knows(keccak256(await signedOf(1)));
  assert.equal((await send(1)).result, keccak256(await signedOf(1)));
});

test("the hash of a transaction of an unknown type is that of the node", async (t) => {
  const [node] = await startWriteNodes(t, ["lies"]);
  assert.ok(node);
  const service = await createService({ nodes: [{ url: node.node.url }], verify: "cheap" });
  t.after(() => service.close());
  const { body } = await rpc(service.url, "eth_sendRawTransaction", ["0x7101"]);
  assert.equal(body.result, WRONG_HASH);
  assert.equal(await suspended(service), 0);
});

test("a private node gets no transaction while the public one is down", async (t) => {
  const nodes = await startWriteNodes(t, ["accepts", "accepts"]);
  const [open, hidden] = nodes;
  const service = await startToAll(
    t,
    nodes.map(({ node }, index) => ({ url: node.url, private: index === 1 })),
  );
  assert.ok(open);
  open.node.faults.answer = "reset";
  for (let index = 0; index < 8; index++) {
    const { body } = await rpc(service.url, "eth_sendRawTransaction", [rawOf(index)]);
    assert.ok(body.error);
  }
  assert.equal(hidden?.received.size, 0);
});

test("a transaction that all nodes refuse has its hash if a node knows it, and the words of a node if none does", async (t) => {
  const send = async (behaviours: readonly WriteBehaviour[]) => {
    const nodes = await startWriteNodes(t, behaviours);
    const service = await startToAll(
      t,
      nodes.map(({ node }) => ({ url: node.url })),
    );
    const { body } = await rpc(service.url, "eth_sendRawTransaction", [rawOf(1)]);
    await assertOnce(nodes, 1);
    return body;
  };
  const { error } = await send(["fails", "low"]);
  assert.deepEqual(error, { code: -32_000, message: "nonce too low: next nonce 7, tx nonce 0" });
  assert.equal((await send(["fails", "sealed"])).result, keccak256(rawOf(1)));
});

test("two anvils have a transaction after one call, and sending it again returns its hash, sealed or not", async (t) => {
  const anvils = await Promise.all([startAnvil(["--no-mining"]), startAnvil(["--no-mining"])]);
  t.after(() => Promise.all(anvils.map((anvil) => anvil.close())));
  const service = await startToAll(
    t,
    anvils.map(({ url }) => ({ url })),
  );
  // Only a node that is available gets transactions, and one of them suffices to start.
  let reads = 0;
  const isEachAvailable = async () => {
    // A node that failed once is available again after a read of a client.
    reads++;
    await rpc(service.url, "eth_getBalance", [`0x${reads.toString(16).padStart(40, "0")}`, "latest"]);
    return service.chains[0]?.upstreams.nodes.every(({ available }) => available) === true;
  };
  await until(isEachAvailable, "both nodes are available");
  const fees = { maxFeePerGas: 10_000_000_000n, maxPriorityFeePerGas: 1n, gas: 21_000n } as const;
  const transaction = { type: "eip1559", chainId: 31_337, nonce: 0, to: SENDER.address, ...fees } as const;
  const raw = await SENDER.signTransaction(transaction);
  const send = async () => (await rpc(service.url, "eth_sendRawTransaction", [raw])).body;
  const hash = keccak256(raw);
  assert.deepEqual((await send()).result, hash);
  for (const { url } of anvils) {
    // The client's answer does not wait for the slowest node.
    await until(async () => {
      const { body } = await rpc(url, "eth_getTransactionByHash", [hash]);
      return Reflect.get(Object(body.result), "hash") === hash;
    }, "the node has the transaction");
  }
  assert.deepEqual((await send()).result, hash, "the nodes have it already");
  await Promise.all(anvils.map(({ url }) => rpc(url, "evm_mine", [])));
  assert.deepEqual((await send()).result, hash, "it is sealed: nonce too low");
});
