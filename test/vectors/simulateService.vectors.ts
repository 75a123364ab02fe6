import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Address, formatData, formatQuantity, type Hash } from "../../src/ethereum/hex.ts";
import { rpc } from "../support/clients/rpc.ts";
import { createService, type Service } from "../support/servers/service.ts";
import { readConformanceChain } from "./conformanceChain.ts";
import { maskSimulation } from "./maskSimulation.ts";
import { readVectorChain } from "./vectorChain.ts";
import { type Request, readVectors, vectorFolder } from "./vectorFolder.ts";
import { createVectorNode, type VectorNode } from "./vectorNode.ts";

/** Sends eth_simulateV1 to forebay, which executes it. The node has the state of the head, and rejects the method. */
const all = readVectors();
const vectors = all.filter(({ method }) => method === "eth_simulateV1");
const chain = readVectorChain();
const folder = join(vectorFolder, "execution-apis");

const { state } = readConformanceChain();

const NOTHING = new Uint8Array(0);
const word = (value: Uint8Array): string => `0x${value.toHex().padStart(64, "0")}`;

/** The state at the head. The node has no state of older blocks. */
const answerState = ({ method, params = [] }: Request, numberOf: (block: unknown) => number | undefined) => {
  const account = state.get(String(params[0]).toLowerCase() as Address);
  const block = method === "eth_getStorageAt" ? params[2] : params[1];
  const known = ["eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt"].includes(method);
  if (!known || numberOf(block) === undefined) {
    return undefined;
  }
  switch (method) {
    case "eth_getBalance":
      return { result: formatQuantity(account?.balance ?? 0n) };
    case "eth_getTransactionCount":
      return { result: formatQuantity(account?.nonce ?? 0n) };
    case "eth_getCode":
      return { result: formatData(account?.code ?? NOTHING) };
    default: {
      const slot = `0x${String(params[1]).slice(2).padStart(64, "0")}` as Hash;
      return { result: word(account?.storage.get(slot) ?? NOTHING) };
    }
  }
};

let node: VectorNode;
let service: Service;

before(async () => {
  const refused = new Set(["eth_simulateV1", "debug_traceCall", "eth_createAccessList"]);
  node = await createVectorNode({ vectors: all, chain, finalized: true, answer: answerState, refused });
  service = await createService({
    nodes: [{ url: node.url }],
    forks: { genesis: join(folder, "genesis.json") },
    simulate: { profile: "geth" },
  });
});
after(async () => {
  await service?.close();
  await node?.close();
});

for (const { name, exchanges } of vectors) {
  test(`${name} (executed here)`, async () => {
    for (const { request, response } of exchanges) {
      const { body } = await rpc(service.url, request.method, request.params);
      assert.deepEqual(maskSimulation(body), maskSimulation(response));
    }
  });
}
