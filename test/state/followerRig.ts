import type { RingBlock } from "../../src/core/heads.ts";
import type { StateDifference } from "../../src/state/blockQueue.ts";
import type { SourceGuard } from "../../src/state/sources/sourceGuard.ts";
import { StateFollower, type StateFollowerOptions } from "../../src/state/stateFollower.ts";
import type { StateKey } from "../../src/state/stateKey.ts";
import { ValueStore } from "../../src/state/store/valueStore.ts";
import type { WriteSetSource } from "../../src/state/writeSet.ts";
import type { DropReason } from "../../src/telemetry/stateMetrics.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { hashOf } from "../support/builders/heads.ts";
import { addressOf } from "../support/builders/stateModel.ts";
import { createFakeHeads } from "../support/fakes/fakeHeads.ts";
import { createGuard, everySource } from "./costRig.ts";
import { emptyWriteSet, FakeWriteSets } from "./fakeWriteSets.ts";

const BYTES = 4 * 1024 * 1024;

/** The head of a new rig. */
export const FIRST = 1_000n;
export const BALANCE: StateKey = { address: addressOf(0), field: "balance", slot: undefined };
export const ONE = "1".padStart(64, "0");

export const block = (number: bigint, fork = 0) => ({ number, hash: hashOf(number, fork) });

interface RigOptions {
  readonly cost?: StateFollowerOptions["cost"];
  readonly hasSameRules?: (parent: RingBlock, child: RingBlock) => boolean;
  readonly guard?: SourceGuard;
}

/** Creates a follower of these sources, with fake heads. */
const createFollower = (
  sources: readonly WriteSetSource[],
  { cost = everySource, hasSameRules = () => true, guard = createGuard() }: RigOptions = {},
) => {
  const heads = createFakeHeads(FIRST);
  heads.move({ ...block(FIRST) });
  const values = new ValueStore(BYTES);
  const dropped: DropReason[] = [];
  const outcomes: string[] = [];
  const differences: StateDifference[] = [];
  const follower = new StateFollower({
    heads,
    sources: sources.map((source) => guard.guard(source)),
    cost,
    values,
    guard,
    hasSameRules,
    ...{ chain: "chain", telemetry: createTelemetry({ level: "silent" }) },
    onRead: (_, outcome) => outcomes.push(outcome),
    onDifference: (difference) => differences.push(difference),
    onApplied: () => undefined,
    onDropped: (reason) => dropped.push(reason),
  });
  const enter = (at: { number: bigint; hash: `0x${string}` }, value = ONE, node?: string) =>
    follower.beginRead()({ values: [[BALANCE, value]], node }, at);
  return { heads, values, follower, dropped, outcomes, differences, enter };
};

/** Creates a follower of one source. */
export const createRig = (options: RigOptions = {}) => {
  const source = new FakeWriteSets("trace", (options.cost ?? everySource) === everySource ? 0 : 20);
  const rig = createFollower([source], options);
  /** Publishes blocks and answers their reads. */
  const extend = async (...blocks: readonly ReturnType<typeof block>[]) => {
    rig.heads.move(...blocks);
    const applied = blocks.map((each) => rig.follower.untilApplied(each));
    for (const each of blocks) {
      source.answer(each, emptyWriteSet(each));
    }
    await Promise.all(applied);
  };
  return { ...rig, source, extend };
};
