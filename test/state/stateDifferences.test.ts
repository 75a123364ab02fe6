import assert from "node:assert/strict";
import { test } from "node:test";
import type { Judgement } from "../../src/state/originComparison.ts";
import { StateDifferences } from "../../src/state/stateDifferences.ts";
import type { ValueProvenance } from "../../src/state/store/valueStore.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { hashOf } from "../support/builders/heads.ts";
import { addressOf } from "../support/builders/stateModel.ts";

const BLOCK = { number: 7n, hash: hashOf(7) };
const DIFFERENCE = {
  key: { field: "balance", address: addressOf(1), slot: undefined },
  block: BLOCK,
  known: "1",
  actual: "2",
  node: "asked",
} as const;
const FETCHED: ValueProvenance = { from: { number: 4n, hash: hashOf(4) }, kind: "fetched", node: "giver" };
const LIE = { node: "liar", origin: "liars", value: "2" };

/** Handles one difference. Undefined: the chain has one origin. */
const handle = async (
  judgement: Judgement | undefined,
  source: ValueProvenance | undefined = FETCHED,
  isProven = false,
  { proof, decision }: { readonly proof?: string; readonly decision?: Judgement } = {},
) => {
  const telemetry = createTelemetry({ level: "silent" });
  const events: string[] = [];
  const handler = new StateDifferences({
    chain: "chain",
    comparison: {
      hasSeveral: judgement !== undefined,
      ask: async (difference, given) => ({ difference, source: given, statements: [] }),
      judge: async (_, proven) => (proven === undefined ? judgement : decision) ?? { kind: "unanswered" },
    },
    trust: {
      suspendLastUsed: () => {
        events.push("suspend the last source");
        return "trace";
      },
      suspendNode: (node) => events.push(`suspend traces of ${node}`),
    },
    values: {
      sourceOf: () => source,
      hasProof: () => isProven,
      addProven: () => "added",
      contest: (_, __, onProven) => {
        events.push("contest");
        if (proof !== undefined) {
          setImmediate(() => onProven(proof));
        }
      },
      settle: () => events.push("settle"),
      givers: { carriersOf: (above, upTo) => [`trace of ${above + 1n} to ${upTo}`] },
    },
    follower: {
      epoch: 0,
      forget: (reason) => events.push(`forget ${reason}`),
      forgetNode: (node) => events.push(`forget ${node}`),
      endAnswers: () => events.push("end answers"),
    },
    telemetry,
    recordWrongValue: (node) => events.push(`suspend ${node}`),
  });
  handler.handle(DIFFERENCE, "audit");
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  const { stateDifferences, stateDisagreements } = telemetry.metrics;
  const countOf = async (metric: { get(): Promise<{ values: readonly { value: number }[] }> }) =>
    (await metric.get()).values.reduce((sum, { value }) => sum + value, 0);
  const proofs = (await stateDifferences.get()).values.flatMap(({ value, labels }) => (value > 0 ? labels.proof : []));
  return { events, proofs, wrong: await countOf(stateDifferences), undecided: await countOf(stateDisagreements) };
};

test("with one origin, the source is suspended, all values are dropped, and the difference is counted", async () => {
  const { events, wrong } = await handle(undefined);
  assert.deepEqual(events, ["suspend the last source", "forget difference"]);
  assert.equal(wrong, 1);
});

test("a node that lied is suspended, its traces rest, its values end, and nothing else", async () => {
  const { events, wrong, undecided } = await handle({ kind: "right", refuted: [LIE] });
  assert.deepEqual(events, ["contest", "settle", "suspend liar", "suspend traces of liar", "forget liar"]);
  assert.deepEqual([wrong, undecided], [0, 0]);
});

test("a difference of a proven value is counted once, whatever the other origins say", async () => {
  const judgements: readonly (Judgement | undefined)[] = [
    undefined,
    { kind: "right", refuted: [LIE] },
    { kind: "undecided" },
    { kind: "unanswered" },
    { kind: "wrong", value: "2", cause: "writeSets", refuted: [] },
  ];
  for (const judgement of judgements) {
    const { events, wrong, proofs } = await handle(judgement, FETCHED, true);
    assert.deepEqual([wrong, proofs], [1, ["proven"]], judgement?.kind ?? "one origin");
    assert.deepEqual(events, (await handle(judgement)).events, "the reaction is that to any value");
  }
  assert.deepEqual((await handle(undefined)).proofs, ["none"]);
});

test("without a majority, the key stays contested, nobody is suspended, and that is counted", async () => {
  const { events, wrong, undecided } = await handle({ kind: "undecided" });
  assert.deepEqual(events, ["contest", "end answers"]);
  assert.deepEqual([wrong, undecided], [0, 1]);
});

test("a later proof decides what had no majority", async () => {
  const decision = { kind: "right", refuted: [LIE] } as const;
  const undecided = { kind: "undecided" } as const;
  const { events, wrong } = await handle(undecided, FETCHED, false, { proof: "1", decision });
  const blamed = ["suspend liar", "suspend traces of liar", "forget liar"];
  assert.deepEqual(events, ["contest", "end answers", ...blamed]);
  assert.equal(wrong, 0);
});

test("if the other origins do not respond, all values are dropped", async () => {
  const { events } = await handle({ kind: "unanswered" });
  assert.deepEqual(events, ["contest", "settle", "suspend the last source", "forget difference"]);
});

test("a wrong value that a node gave ends the values of this node, and no trace rests", async () => {
  const { events, wrong } = await handle({ kind: "wrong", value: "2", cause: "node", refuted: [] });
  assert.deepEqual(events, ["contest", "settle", "forget giver"]);
  assert.equal(wrong, 1);
});

test("a wrong value that write sets missed rests the traces since it became known", async () => {
  const { events } = await handle({ kind: "wrong", value: "2", cause: "writeSets", refuted: [] });
  assert.deepEqual(events, ["contest", "settle", "suspend traces of trace of 5 to 7", "forget difference"]);
});

test("a wrong value of a write set rests the trace that has it", async () => {
  const { events } = await handle(
    { kind: "wrong", value: "2", cause: "writeSets", refuted: [] },
    {
      ...FETCHED,
      kind: "written",
    },
  );
  assert.deepEqual(events, ["contest", "settle", "suspend traces of trace of 4 to 4", "forget difference"]);
});

test("a wrong value without a known cause drops all values", async () => {
  const tooOld = await handle({ kind: "wrong", value: "2", cause: "tooOld", refuted: [] });
  assert.deepEqual(tooOld.events, ["contest", "settle", "forget difference"]);
  const unknown = await handle({ kind: "wrong", value: "2", cause: "unknown", refuted: [] }, undefined);
  assert.deepEqual(unknown.events, ["contest", "settle", "suspend the last source", "forget difference"]);
});
