import assert from "node:assert/strict";
import { test } from "node:test";
import { Readiness, type ReadinessOptions, type WatchedChain } from "../../src/admin/readiness.ts";
import type { IdentityFault } from "../../src/nodes/identityGate.ts";

type TestChain = WatchedChain & { isKnown: boolean };

/** A chain with one node: without a fault it is identified. */
const chainOf = (name: string, isKnown: boolean, fault?: IdentityFault, head?: string): TestChain => ({
  name,
  isKnown,
  isRestoring: false,
  upstreams: {
    nodes: [
      {
        name: "node1",
        available: isKnown,
        identity: { isIdentified: fault === undefined, fault },
        state: { because: fault?.text },
      },
    ],
    heads: { current: () => head },
  },
  forwarded: { list: [] },
});

const noAnswer: IdentityFault = { kind: "noAnswer", text: "node1: connect ECONNREFUSED" };

const watch = (rule: ReadinessOptions["rule"], chains: readonly TestChain[]) => {
  const clock = { nowMs: 5_000 };
  const readiness = new Readiness({
    rule,
    chains: () => chains,
    isDraining: () => false,
    nowMs: () => clock.nowMs,
  });
  return {
    clock,
    status: (chain?: string) => readiness.report(chain).status,
    report: readiness.report.bind(readiness),
  };
};

test("any: all at once, or one after 10 s; a reload that brings an unknown chain changes nothing", () => {
  const chains = [chainOf("op", true), chainOf("base", false, noAnswer)];
  const { clock, status } = watch("any", chains);
  assert.equal(status(), 503);
  clock.nowMs += 9_999;
  assert.equal(status(), 503);
  clock.nowMs += 1;
  assert.equal(status(), 200);
  assert.deepEqual([status("op"), status("base"), status("other")], [200, 503, 404]);
  chains.splice(0, 2, chainOf("new", false, noAnswer));
  assert.equal(status(), 200);
});

test("a process waits up to 10 s until known state is restored, and not after a reload", () => {
  const chain = { ...chainOf("op", true), isRestoring: true };
  const { clock, status, report } = watch("all", [chain]);
  assert.equal(status(), 503);
  assert.match(JSON.stringify(report(undefined).body), /"reason":"known state is being restored"/);
  assert.equal(status("op"), 200, "the chain alone is known");
  clock.nowMs += 10_000;
  assert.equal(status(), 200);

  const restored = { ...chainOf("op", true), isRestoring: true };
  const other = watch("any", [restored]);
  assert.equal(other.status(), 503);
  restored.isRestoring = false;
  assert.equal(other.status(), 200);
  restored.isRestoring = true;
  assert.equal(other.status(), 200, "a process that was ready once stays ready");
});

test("any: without a known chain it is not ready, however long it takes", () => {
  const { clock, status } = watch("any", [chainOf("op", false, noAnswer)]);
  clock.nowMs += 3_600_000;
  assert.equal(status(), 503);
});

test("each chain has the reason why it is not ready", () => {
  const wrong: IdentityFault = { kind: "wrongChain", text: 'node "node1" has chain id 5' };
  const { report } = watch("all", [
    chainOf("unreachable", false, noAnswer),
    chainOf("wrong", false, wrong),
    chainOf("empty", false, { kind: "noGenesis", text: "genesis block cannot be read" }),
    chainOf("young", false),
    chainOf("almost", false, undefined, "0x1"),
  ]);
  const { body } = report(undefined);
  assert.ok("chains" in body && Array.isArray(body.chains));
  assert.deepEqual(
    body.chains.map(({ reason }: { reason?: string }) => reason),
    ["no node reachable", "wrong chain id or genesis", "genesis missing", "no head yet", "rules not read yet"],
  );
  assert.deepEqual(body.chains[1].nodes, { node1: wrong.text });
});
