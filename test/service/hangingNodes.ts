import assert from "node:assert/strict";
import { rpc } from "../support/clients/rpc.ts";
import { createFakeChain } from "../support/fakes/fakeChain.ts";
import { createFakeNode } from "../support/fakes/fakeNode.ts";
import { createService } from "../support/servers/service.ts";

export const READS = 8;
/** Far longer than a busy machine stalls: a read ends because another node answers it, or not at all. */
const LONG_MS = 60_000;

/** Two nodes behind a service without a memory cache. */
export const startTwoNodes = async (upstream = {}) => {
  const chain = createFakeChain({ height: 100 });
  const handlers = { eth_getBalance: () => "0x1", debug_traceCall: () => ({ gas: 1 }), eth_call: () => "0x" };
  const nodes = await Promise.all([createFakeNode({ chain, handlers }), createFakeNode({ chain, handlers })]);
  const [one, two] = nodes;
  const stack = new AsyncDisposableStack();
  stack.defer(async () => {
    await Promise.all(nodes.map((node) => node.close()));
  });
  const launch = async () => {
    const service = await createService(
      {
        nodes: [
          { url: one.url, name: "one" },
          { url: two.url, name: "two" },
        ],
        upstream: { timeoutMs: LONG_MS, ...upstream },
        verify: "cheap",
      },
      { cache: { memoryBytes: 0 } },
    );
    stack.defer(() => service.close());
    return service;
  };
  return { one, two, launch, [Symbol.asyncDispose]: () => stack[Symbol.asyncDispose]() };
};

let reads = 0;
export const readBalances = (url: string) =>
  Promise.all(
    Array.from({ length: READS }, () => {
      reads += 1;
      return rpc(url, "eth_getBalance", [`0x${reads.toString(16).padStart(40, "0")}`, "0x10"]);
    }),
  );

export const assertAnswered = (answers: Awaited<ReturnType<typeof readBalances>>): void => {
  for (const { status, body } of answers) {
    assert.deepEqual({ status, result: body.result }, { status: 200, result: "0x1" });
  }
};

/** Asserts that a node that does not answer these methods, by default none, costs none of 200 reads, from the start on. */
export const assertCostsNone = async (
  { one: { faults }, launch }: Awaited<ReturnType<typeof startTwoNodes>>,
  methods?: readonly string[],
): Promise<void> => {
  faults.methods = methods;
  faults.answer = methods && "hang";
  const service = await launch();
  faults.answer = "hang";
  for (let round = 0; round < 200 / READS; round += 1) {
    assertAnswered(await readBalances(service.url));
  }
};
