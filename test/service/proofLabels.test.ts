import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { table } from "../../src/methods/table.ts";
import { readRepositoryFile } from "../docs/repositoryFiles.ts";
import { rpc } from "../support/clients/rpc.ts";
import { settled } from "../support/clients/settled.ts";
import { cacheableCallsOf, createSealedChain, type SealedChain } from "../support/servers/sealedChain.ts";
import { createService, type Service } from "../support/servers/service.ts";

const CALLS = 600;
const LABELS = ["stated", "checked", "proven"];
const NOBODY = `0x${"12".repeat(20)}`;
const HEADING = "### What an answer can be";

let chain: SealedChain;
let service: Service;

before(async () => {
  chain = await createSealedChain();
  service = await createService({ nodes: [{ url: chain.devnet.anvilUrl }], pending: { mode: "node" } });
  await settled(service);
});
after(async () => {
  await service?.close();
  await chain?.devnet.close();
});

/** The most that each method can be, by the table of the docs. */
const readTable = (): ReadonlyMap<string, string> => {
  const text = readRepositoryFile("docs/answers.md");
  const section = text.slice(text.indexOf(HEADING)).split("\n### ", 2)[0] ?? "";
  const rows = [...section.matchAll(/^\| (`[^|]+) \| (proven|checked) \|/gm)];
  return new Map(
    rows.flatMap(([, methods = "", label = ""]) =>
      [...methods.matchAll(/`(\w+)`/g)].map(([, method = ""]): [string, string] => [method, label]),
    ),
  );
};

const labelOf = async (method: string, params: readonly unknown[]): Promise<string> => {
  const { headers, body } = await rpc(service.url, method, params);
  const [label = "", block] = (headers.get("x-forebay-proof") ?? "").split("; block=");
  assert.ok(LABELS.includes(label), `${method}: ${label}`);
  assert.ok(block === undefined || /^\d+$/.test(block), `${method}: ${block}`);
  return body.error === undefined ? label : "stated";
};

const header = async (body: unknown): Promise<string | null> => {
  const response = await fetch(service.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  await response.text();
  return response.headers.get("x-forebay-proof");
};

/** Methods that anvil has not, and those whose values become known only at later blocks. */
const UNREACHED =
  /^(eth_getHeader|eth_getBlockAccessList|debug_getRawBlockAccessList|debug_getRawTransaction|eth_call|eth_estimateGas|eth_getBalance|eth_getTransactionCount|eth_getStorageAt|eth_getCode)/;

test("every method of the table has at most the label that the docs say, from a node and from the cache", async () => {
  const most = readTable();
  const names = new Set(table.map(({ name }) => name));
  for (const method of most.keys()) {
    assert.ok(names.has(method), `${method} is in the table of methods`);
  }
  const reached = new Map<string, number>();
  const compare = async (method: string, params: readonly unknown[]): Promise<void> => {
    const label = LABELS.indexOf(await labelOf(method, params));
    assert.ok(label <= LABELS.indexOf(most.get(method) ?? "stated"), `${method} ${JSON.stringify(params)} is ${label}`);
    reached.set(method, Math.max(label, reached.get(method) ?? 0));
  };
  const withHashes = [...chain.final, ...chain.recent].map(({ hash }) => ({
    method: "eth_getBlockByHash",
    params: [hash, false],
  }));
  const number = chain.recent.at(-1)?.number;
  const empty = { method: "eth_getLogs", params: [{ fromBlock: number, toBlock: number, address: NOBODY }] };
  const calls = [empty, ...cacheableCallsOf(chain, CALLS), ...withHashes];
  for (const { method, params } of [...calls, ...calls]) {
    await compare(method, params);
  }
  for (const name of names) {
    if (!reached.has(name)) {
      await compare(name, ["0x1", "latest"]);
    }
  }
  for (const [method, label] of most) {
    // The call of a filter needs its id.
    if (method !== "eth_getFilterLogs" && !UNREACHED.test(method)) {
      assert.equal(LABELS[reached.get(method) ?? 0], label, `${method} reaches its label`);
    }
  }
});

test("a block with hashes is proven once it was read in full", async () => {
  const [{ hash = "", number = "" } = {}] = chain.recent;
  const restarted = await createService({ nodes: [{ url: chain.devnet.anvilUrl }], pending: { mode: "node" } });
  try {
    await settled(restarted);
    const ask = async (method: string, ...params: readonly unknown[]) =>
      (await rpc(restarted.url, method, params)).headers.get("x-forebay-proof");
    const block = `block=${Number(number)}`;
    assert.equal(await ask("eth_getBlockTransactionCountByHash", hash), "stated");
    assert.equal(await ask("eth_getBlockByHash", hash, false), `checked; ${block}`);
    assert.equal(await ask("eth_getBlockByNumber", number, true), `checked; ${block}`);
    assert.equal(await ask("eth_getBlockByNumber", number, false), `proven; ${block}`);
    assert.equal(await ask("eth_getBlockTransactionCountByNumber", number), `proven; ${block}`);
    assert.equal(await ask("eth_getBlockByHash", hash, false), `checked; ${block}`, "as it was stored");
  } finally {
    await restarted.close();
  }
});

test("no list with pending logs is proven", async () => {
  const number = chain.recent.at(-1)?.number;
  const ask = (toBlock: unknown) => labelOf("eth_getLogs", [{ fromBlock: number, toBlock, address: NOBODY }]);
  assert.equal(await ask(number), "proven");
  assert.equal(await ask("pending"), "stated");
});

test("a batch has the label of its weakest item, and a notification none", async () => {
  const call = (method: string, ...params: readonly unknown[]) => ({ jsonrpc: "2.0", id: 1, method, params });
  const [account] = chain.accounts;
  const proof = call("eth_getProof", account, [], "latest");
  assert.match((await header([call("eth_blockNumber"), proof])) ?? "", /^proven; block=\d+$/);
  assert.equal(await header([call("eth_blockNumber"), call("eth_chainId")]), "stated");
  assert.equal(await header([proof, call("eth_getBlockByNumber", "latest")]), "stated", "an error");
  const { id: _, ...notification } = proof;
  assert.equal(await header(notification), null);
});
