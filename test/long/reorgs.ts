import { createRandomBelow } from "../support/builders/randomValues.ts";
import { HEAD_LIES } from "../support/fakes/headLies.ts";
import { withLifespan } from "../support/servers/withLifespan.ts";
import type { Untrue } from "../world/reorgs/recordedReplica.ts";
import { type ReorgStep, startReorgRun } from "../world/reorgs/reorgRun.ts";
import type { LongOptions } from "./support/longOptions.ts";

const DEFAULT_SECONDS = 300;
/** `SEED=n` selects other steps. */
const seed = Number(process.env.SEED ?? 1);
/** `LIES=1` adds a third node with wrong responses. */
const LIES = process.env.LIES === "1" ? HEAD_LIES : [];
const MAX_DEPTH = 20;

/** Yields this number of random steps, or steps until the time is over. */
function* createSteps({ seconds = DEFAULT_SECONDS, steps }: LongOptions): Generator<ReorgStep> {
  const endMs = performance.now() + seconds * 1_000;
  const random = createRandomBelow(seed);
  for (let step = 0; steps === undefined ? performance.now() < endMs : step < steps; step++) {
    const chance = random(10);
    if (chance < 5) {
      yield { kind: "mine", blocks: 1 + random(3) };
    } else if (chance < 8) {
      yield { kind: "reorg", depth: 1 + random(MAX_DEPTH) };
    } else {
      yield { kind: "fork", depth: random(5), ours: 1 + random(5), theirs: 1 + random(5) };
    }
  }
}

const START_CHARACTERS = 80;

const kindOf = ({ question, cacheStatus, text, expected }: Untrue): string => {
  const wanted = expected.map((each) => each.slice(0, START_CHARACTERS)).join(" or ");
  return `${question.split(" ", 1)[0]} (${cacheStatus}): ${text.slice(0, START_CHARACTERS)} instead of ${wanted}`;
};

export const takesSteps = true;

/** Reorganises and forks two nodes. Checks that every response of two replicas with one Redis was correct in a view of its time. */
export const long = (options: LongOptions) =>
  withLifespan(async (t) => {
    const { run, replicas } = await startReorgRun(t, seed, LIES);
    const untrue = await run(createSteps(options));
    const kinds = Map.groupBy(untrue, kindOf);
    const total = (field: "answers" | "hits" | "views") => replicas.reduce((sum, replica) => sum + replica[field], 0);
    const excused = untrue.filter(({ isError, isOfInvented }) => isError || isOfInvented).length;
    return {
      claim: "every answer was true of a view that the replica held while it was asked",
      seed,
      lies: LIES.length,
      answers: total("answers"),
      hits: total("hits"),
      views: total("views"),
      branchErrors: replicas.map(({ branchErrors }) => branchErrors),
      slowest: replicas.map(({ slowest }) => slowest),
      ...{ untrue: untrue.length, excused },
      kinds: Object.fromEntries([...kinds].map(([kind, each]) => [kind, each.length])),
      examples: [...kinds.values()].flatMap((each) => each.slice(0, 1)),
      passed: total("answers") > excused && untrue.length === (options.steps === undefined ? 0 : excused),
    };
  });
