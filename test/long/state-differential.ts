import type { Service } from "../support/servers/service.ts";
import { ComparedReads, type ReadTally } from "../world/judge/comparedReads.ts";
import { createStateReads } from "../world/judge/stateReads.ts";
import { LONG_FAULTS } from "../world/planted/longFaults.ts";
import { STAND_INS, type StandInVariant } from "../world/state/standInVariants.ts";
import { runStateWorld } from "../world/state/stateRun.ts";
import type { LongOptions } from "./support/longOptions.ts";
import { foundByService, stateCounts } from "./support/stateCounts.ts";

/** A run with a planted fault ends at its first difference. */
const planted = process.env.PLANTED === undefined ? undefined : LONG_FAULTS[process.env.FAULT ?? ""];
const WHOLE_SECONDS = 1_440;
const MIN_SECONDS = 5;
const CLIENTS = 8;
const FIRST_BLOCKS = 300;
const DEFAULT_SEED = 1;
/** `VARIANT=text` selects variants by a part of their name, `SEED=n` other blocks and reads. */
const only = process.env.VARIANT;
const seed = Number(process.env.SEED ?? DEFAULT_SEED);

interface Length {
  readonly seconds: number;
  readonly steps: number | undefined;
}

const STATE_READS = ["eth_getBalance", "eth_getTransactionCount", "eth_getCode", "eth_getStorageAt"];

const isFound = async ({ differences }: ReadTally, service: Service): Promise<boolean> =>
  planted !== undefined &&
  ((await foundByService(service)) > 0 || (!planted.isFoundByService && differences.length > 0));

const runStandIn = (variant: StandInVariant, { seconds, steps }: Length) =>
  runStateWorld({
    ...{ variant, seed, seconds, steps, length: FIRST_BLOCKS },
    state: variant.traces ? { source: "trace" } : undefined,
    begin: async ({ chain, service, node }) => {
      const compared = new ComparedReads(chain, service, createStateReads(chain), seed);
      const { tally } = compared;
      return {
        clients: Array.from({ length: CLIENTS }, () => compared),
        isOver: async (leftMs) => leftMs <= 0 || isFound(tally, service),
        report: async () => {
          const forwarded = STATE_READS.reduce((sum, method) => sum + (node.calls.get(method) ?? 0), 0);
          return {
            ...tally,
            errors: tally.errors.length,
            ...(await stateCounts(service)),
            localShare: Number((1 - forwarded / Math.max(1, tally.comparisons)).toFixed(3)),
          };
        },
      };
    },
  });

export const takesSteps = true;

/**
 * Compares random state reads with a node at the same hash, while blocks arrive and are reorganised. A step is a block or a
 * reorganisation that the service serves.
 */
export const long = async ({ seconds, steps }: LongOptions) => {
  const chosen = STAND_INS.filter(({ name }) => only === undefined || name.includes(only));
  const each = Math.max((seconds ?? WHOLE_SECONDS) / chosen.length, MIN_SECONDS);
  const variants: Record<string, unknown> = {};
  let passed = true;
  for (const variant of chosen) {
    const result = await runStandIn(variant, { seconds: each, steps });
    console.log(variant.name, JSON.stringify(result));
    variants[variant.name] = result;
    const { comparisons, errors, differences, foundByService: found } = result;
    passed &&= differences.length === 0 && found === 0 && comparisons > errors && (errors === 0 || steps !== undefined);
  }
  return { claim: "no state read differs from the node at the same hash", seed, variants, passed };
};
