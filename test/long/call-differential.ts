import { createRandom } from "../support/builders/randomValues.ts";
import type { Service } from "../support/servers/service.ts";
import { ComparedReads } from "../world/judge/comparedReads.ts";
import { createCallReads } from "../world/judge/randomCalls.ts";
import { STAND_INS, type StandInVariant } from "../world/state/standInVariants.ts";
import { runStateWorld } from "../world/state/stateRun.ts";
import { ComparedAuthorizations } from "./support/comparedAuthorizations.ts";
import type { LongOptions } from "./support/longOptions.ts";

const WHOLE_SECONDS = 960;
const MIN_SECONDS = 5;
const CLIENTS = 6;
const FIRST_BLOCKS = 60;
/** On a busy machine, a variant that has judged nothing yet runs this much longer. */
const MAX_LONGER_MS = 30_000;
/** Write sets cost little, so that they are read for a few clients. */
const UNITS = { debug_traceBlockByHash: 2, eth_getBlockByHash: 0 };
/** `VARIANT=text` selects variants by a part of their name, `SEED=n` other blocks and calls. */
const only = process.env.VARIANT;
const seed = Number(process.env.SEED ?? 1);
/** A run with a planted fault ends when it is found. */
const isPlanted = process.env.PLANTED !== undefined;

const eventsOf = async ({ telemetry }: Service): Promise<Record<string, number>> => {
  const { values } = await telemetry.metrics.stateAnswers.get();
  return Object.fromEntries(values.flatMap(({ labels, value }) => (value > 0 ? [[String(labels.event), value]] : [])));
};

interface Judged {
  readonly comparisons: number;
  readonly authorizations: { readonly comparisons: number } | undefined;
  readonly events: Readonly<Record<string, number>>;
}

/** Whether calls and authorizations were compared, and a learned answer was used at a later block. */
const isJudged = ({ comparisons, authorizations, events }: Judged): boolean =>
  comparisons > 0 && (authorizations === undefined || authorizations.comparisons > 0) && (events.reused ?? 0) > 0;

const runVariant = (variant: StandInVariant, seconds: number, steps: number | undefined) =>
  runStateWorld({
    ...{ variant, seed, seconds, steps, length: FIRST_BLOCKS },
    state: { units: UNITS, source: variant.traces ? "trace" : "accessList" },
    begin: async ({ chain, service }) => {
      const compared = new ComparedReads(chain, service, createCallReads(chain, createRandom(seed)), seed);
      const authorizations = await ComparedAuthorizations.create(chain, service.url, seed);
      const report = async () => ({
        ...{ ...compared.tally, authorizations: authorizations?.tally },
        events: await eventsOf(service),
      });
      const isFound = (): boolean => isPlanted && (authorizations?.tally.differences.length ?? 0) > 0;
      return {
        clients: [
          ...Array.from({ length: CLIENTS }, () => compared),
          ...(authorizations === undefined ? [] : [authorizations]),
        ],
        isOver: async (leftMs) => isFound() || leftMs < -MAX_LONGER_MS || (leftMs <= 0 && isJudged(await report())),
        report,
      };
    },
  });

export const takesSteps = true;

/**
 * Compares calls with executions on the state of the same hash, while blocks arrive and are reorganised. Simulated authorizations
 * are compared with the reference engine. A step is a block or a reorganisation that the service serves.
 */
export const long = async ({ seconds, steps }: LongOptions) => {
  const chosen = STAND_INS.filter(({ name }) => only === undefined || name.includes(only));
  const each = Math.max((seconds ?? WHOLE_SECONDS) / chosen.length, MIN_SECONDS);
  const variants: Record<string, unknown> = {};
  let passed = true;
  for (const variant of chosen) {
    const result = await runVariant(variant, each, steps);
    console.log(variant.name, JSON.stringify(result));
    variants[variant.name] = result;
    const { authorizations, events } = result;
    const areEqual = [result, ...(authorizations === undefined ? [] : [authorizations])].every(
      ({ differences }) => differences.length === 0,
    );
    const { comparisons, errors } = result;
    passed &&= areEqual && events.differed === undefined;
    passed &&= steps === undefined ? isJudged(result) : comparisons > errors.length;
  }
  return { claim: "no call differs from an execution on the state of the same hash", seed, variants, passed };
};
