import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createService, type Service } from "../support/servers/service.ts";
import { compare } from "./compare.ts";
import { readVectorChain } from "./vectorChain.ts";
import { type Exchange, readVectors } from "./vectorFolder.ts";
import { createVectorNode, type VectorNode } from "./vectorNode.ts";

const vectors = readVectors();
const chain = readVectorChain();

const post = async (url: string, body: unknown): Promise<unknown> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return response.json();
};

const namesFinality = ({ params = [] }: Exchange["request"]): boolean =>
  params.some((value) => value === "safe" || value === "finalized");

/** Sends every vector through forebay to a node that answers from the vectors: alone, then all of one method as a batch. */
for (const finalized of [true, false]) {
  const place = finalized ? "final blocks" : "recent blocks";
  let node: VectorNode;
  let service: Service;

  before(async () => {
    node = await createVectorNode({ vectors, chain, finalized });
    service = await createService({
      nodes: [{ url: node.url }],
      forks: "none",
      // The vectors contain methods of this namespace, which are refused by default.
      allowNamespaces: ["testing"],
    });
  });
  after(async () => {
    await service.close();
    await node.close();
  });

  // A node without a finalized block cannot answer at that tag. Those vectors run with a finalized block only.
  const asked = vectors.filter(
    ({ exchanges }) => finalized || !exchanges.some(({ request }) => namesFinality(request)),
  );

  for (const { name, exchanges, specOnly } of asked) {
    test(`${name} (${place})`, async (t) => {
      for (const exchange of exchanges) {
        const actual = await post(service.url, exchange.request);
        compare(t, exchange, actual as Exchange["response"], specOnly);
      }
    });
  }

  for (const method of new Set(asked.map((vector) => vector.method))) {
    test(`batch of ${method} (${place})`, async () => {
      const exchanges = asked.filter((vector) => vector.method === method).flatMap((vector) => vector.exchanges);
      const requests = exchanges.map(({ request }, id) => ({ ...request, id }));
      const answers = (await post(service.url, requests)) as readonly Exchange["response"][];
      const singles = await Promise.all(requests.map((request) => post(service.url, request)));
      assert.deepEqual(answers, singles);
    });
  }
}
