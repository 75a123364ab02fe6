import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeError } from "../../src/core/node.ts";
import type { FakeChain } from "../support/fakes/fakeChain.ts";
import type { ChainNode } from "../support/servers/chainNode.ts";
import { mineFor, run, trackHeads } from "./trackHeads.ts";

const BLOCK_MS = 2_000;
/** Two reads of the tags, and one after the wait of 15 s. */
const WAIT_MS = 40_000;

/** The node answers a tag with an error that no one knows. */
const failTag = (node: ChainNode | undefined, tag: string): void => {
  const { send } = node ?? {};
  if (node !== undefined && send !== undefined) {
    node.send = async (call, reach) => {
      if (call.params[0] === tag) {
        throw new NodeError("other", node.name, "a strange error");
      }
      return send(call, reach);
    };
  }
};

for (const isFirst of [true, false]) {
  for (const tag of ["safe", "finalized"] as const) {
    test(`${tag} is what the other origin reports if one answers it with an error ${isFirst ? "from the start" : "later"}`, async (t) => {
      const setup = await trackHeads(t, {
        ...{ height: 60, nodes: 2 },
        alter: ([, failing]) => isFirst && failTag(failing, tag),
      });
      const { clock, chain, heads, nodes, telemetry } = setup;
      const warnings = t.mock.method(telemetry.log, "warn", () => undefined);
      const active = () => heads.markActive();
      if (!isFirst) {
        await mineFor({ clock, chain }, 20_000, BLOCK_MS, active);
        failTag(nodes[1], tag);
      }
      const before = chain.latest.number;
      await mineFor({ clock, chain }, WAIT_MS, BLOCK_MS, active);
      assert.ok((heads.current()?.[tag]?.number ?? 0n) >= before, `${tag} is ${heads.current()?.[tag]?.number}`);
      await mineFor({ clock, chain }, WAIT_MS, BLOCK_MS, active);
      const reasons = warnings.mock.calls.map(({ arguments: [fields] }) => Object(fields).reason);
      assert.deepEqual(
        reasons.filter((reason) => reason === "a strange error"),
        ["a strange error"],
      );
    });
  }
}

for (const [failing, other] of [
  ["safe", "finalized"],
  ["finalized", "safe"],
] as const) {
  test(`${other} is read each 12 s although the node answers ${failing} with errors`, async (t) => {
    let reads = 0;
    const { clock, chain, heads } = await trackHeads(t, {
      ...{ height: 60, nodes: 1 },
      alter: ([node]) => {
        failTag(node, failing);
        const { send } = node ?? {};
        if (node !== undefined && send !== undefined) {
          node.send = (call, reach) => {
            reads += call.params[0] === other ? 1 : 0;
            return send(call, reach);
          };
        }
      },
    });
    const active = () => heads.markActive();
    await mineFor({ clock, chain }, 180_000, BLOCK_MS, active);
    const before = reads;
    await mineFor({ clock, chain }, 120_000, BLOCK_MS, active);
    assert.ok(reads - before >= 9, `${reads - before} reads in two minutes`);
  });
}

test("a final block is known within two reads after a node did not answer for minutes", async (t) => {
  let isFailing = true;
  const { clock, chain, heads } = await trackHeads(t, {
    ...{ height: 60, nodes: 1 },
    alter: ([node]) => {
      const { send } = node ?? {};
      if (node !== undefined && send !== undefined) {
        node.send = (call, reach) =>
          isFailing && call.params[0] === "finalized"
            ? Promise.reject(new NodeError("timeout", node.name, "no response"))
            : send(call, reach);
      }
    },
  });
  await mineFor({ clock, chain }, 150_000, BLOCK_MS, () => heads.markActive());
  isFailing = false;
  await mineFor({ clock, chain }, 36_000, BLOCK_MS, () => heads.markActive());
  assert.ok(heads.current()?.finalized);
});

test("of three origins, two must report a block as final also while the third answers with an error", async (t) => {
  const { clock, chain, heads } = await trackHeads(t, {
    ...{ height: 60, nodes: 3 },
    alter: ([liar, , failing]) => {
      Object.assign(liar ?? {}, { finalizedDepth: 2 });
      failTag(failing, "finalized");
    },
  });
  await mineFor({ clock, chain }, 2 * WAIT_MS, BLOCK_MS, () => {
    heads.markActive();
    const { finalized } = heads.current() ?? {};
    assert.ok(finalized === undefined || chain.latest.number - finalized.number >= 8n);
  });
  assert.ok(heads.current()?.finalized);
});

/** What the two other origins do. */
const OTHERS: Readonly<Record<string, (node: ChainNode, chain: FakeChain) => void>> = {
  "answer with an error": (node) => failTag(node, "finalized"),
  "have no new block": (node, chain) => Object.assign(node, { height: Number(chain.latest.number) }),
  "have nodes that are out of use": (node) => Object.assign(node, { available: false }),
};

for (const [name, change] of Object.entries(OTHERS)) {
  test(`of three origins, one alone makes no block final while the two others ${name}`, async (t) => {
    const setup = await trackHeads(t, { height: 60, nodes: 3 });
    const [liar, ...others] = setup.nodes as [ChainNode, ChainNode, ChainNode];
    await run(setup, 8);
    liar.finalizedDepth = 2;
    for (const node of others) {
      change(node, setup.chain);
    }
    await run(setup, 40, () => {
      const { finalized } = setup.heads.current() ?? {};
      assert.ok(finalized && setup.chain.latest.number - finalized.number >= 7n, `finalized is ${finalized?.number}`);
    });
  });
}
