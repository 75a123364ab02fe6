import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startAnvil } from "../devnet/anvil.ts";
import { metric, rpc } from "../support/clients/rpc.ts";
import { createCountingProxy } from "../support/fakes/countingProxy.ts";
import { createService } from "../support/servers/service.ts";

const anvil = await startAnvil(["--hardfork", "prague", "--no-mining"]);
after(() => anvil.close());

/** Reads the slots from 0 to 1,799. */
const MANY_SLOTS = "0x5f5b8054506001018061070811600157";
/** Reads the balances of the addresses 0, 1, 2 ... until it runs out of gas. */
const ENDLESS_BALANCES = "0x5f5b803150600101600156";
const CONTRACT = `0x${"c0".repeat(20)}`;
/** Nothing is prefetched for a payload of this size, so that each value is read by its own call. */
const LONG_DATA = `0x${"00".repeat(20_000)}`;
const CHAIN = { blockTimeMs: 1_000, pending: { mode: "node" }, forks: "prague" } as const;
/** An account is three calls to a node: balance, nonce and code. */
const CALLS_OF_VALUE = 3;

test("a simulation that reads too many values ends with an error before it reads them", async (t) => {
  const proxy = await createCountingProxy(anvil.url);
  const maxStateReads = 200;
  const service = await createService({ ...CHAIN, nodes: [{ url: proxy.url }], simulate: { maxStateReads } });
  t.after(async () => {
    await service.close();
    await proxy.close();
  });
  const before = proxy.total;
  const payload = {
    blockStateCalls: [
      { stateOverrides: { [CONTRACT]: { code: ENDLESS_BALANCES } }, calls: [{ to: CONTRACT, data: LONG_DATA }] },
    ],
  };
  const { body } = await rpc(service.url, "eth_simulateV1", [payload, "latest"]);
  assert.deepEqual(body.error, {
    code: -32_000,
    message: `execution aborted: it reads more than ${maxStateReads} state values from nodes (simulate.maxStateReads)`,
  });
  const calls = proxy.total - before;
  t.diagnostic(`${calls} node calls`);
  // Polls of heads are a few calls more.
  assert.ok(calls < CALLS_OF_VALUE * maxStateReads + 50, `${calls} node calls`);
  assert.equal(await metric(service.opsUrl, "forebay_simulate_state_read_limit_total"), 1);
});

test("a simulation finds all values that it may read, however small the cache of state is", async (t) => {
  const service = await createService({ ...CHAIN, nodes: [{ url: anvil.url }], state: { cacheBytes: 0 } });
  t.after(() => service.close());
  const contract = `0x${"c1".repeat(20)}`;
  await anvil.call("anvil_setCode", contract, MANY_SLOTS);
  await anvil.call("evm_mine");
  await service.chains[0]?.upstreams.heads.refresh();
  // A trace of the call returns all slots at once.
  const payload = { blockStateCalls: [{ calls: [{ to: contract }] }] };
  const { body } = await rpc(service.url, "eth_simulateV1", [payload, "latest"]);
  assert.equal(body.error, undefined, JSON.stringify(body.error));
  const [{ calls }] = body.result as [{ readonly calls: readonly [{ readonly status: string }] }];
  assert.equal(calls[0].status, "0x1");
});

test("state reads of a simulation count against the client's rate limit", async (t) => {
  const service = await createService(
    { ...CHAIN, nodes: [{ url: anvil.url }] },
    { access: { limitPerAddress: { calls: 40, seconds: 600 } } },
  );
  t.after(() => service.close());
  const calls = Array.from({ length: 50 }, (_, index) => ({
    to: `0x${(index + 0x1000).toString(16).padStart(40, "0")}`,
    ...(index === 0 && { data: LONG_DATA }),
  }));
  const simulated = await rpc(service.url, "eth_simulateV1", [{ blockStateCalls: [{ calls }] }, "latest"]);
  assert.equal(simulated.body.error, undefined, simulated.text);
  assert.ok((await metric(service.opsUrl, "forebay_access_charged_total", 'reason="stateReads"')) >= calls.length);
  assert.equal((await rpc(service.url, "eth_chainId")).status, 429);
});
