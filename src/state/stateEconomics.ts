import type { Metrics } from "../telemetry/telemetry.ts";
import { BilledSource } from "./billedSource.ts";
import { EconomicPolicy, PERIOD_MS } from "./economicPolicy.ts";
import { LearningBudget, type LearningLimits } from "./learningBudget.ts";
import type { ProbationLimits } from "./probation.ts";
import type { UnitsOf } from "./providerUnits.ts";
import { SampleRate } from "./sampleRate.ts";
import { SourceTrust } from "./sourceTrust.ts";
import { UnitLedger } from "./unitLedger.ts";
import { UsedKeys } from "./usedKeys.ts";
import type { WriteSetSource } from "./writeSet.ts";

/** The parts of one chain that know what following costs and saves. */
export interface StateEconomics {
  readonly unitsOf: UnitsOf;
  readonly ledger: UnitLedger;
  readonly learning: LearningBudget;
  readonly usedKeys: UsedKeys;
  readonly policy: EconomicPolicy;
  readonly trust: SourceTrust;
  readonly sampleRate: SampleRate;
  /** Returns a source whose units are counted and that can rest. */
  account(source: WriteSetSource): WriteSetSource;
}

export interface StateEconomicsOptions {
  readonly chain: string;
  readonly metrics: Metrics;
  readonly unitsOf: UnitsOf;
  readonly nowMs: () => number;
  readonly probation: ProbationLimits;
  readonly learning: LearningLimits;
  /** The names of the nodes of the chain. */
  readonly nodes: readonly string[];
}

export const createStateEconomics = ({
  chain,
  metrics,
  unitsOf,
  nowMs,
  probation,
  learning,
  nodes,
}: StateEconomicsOptions): StateEconomics => {
  const ledger = new UnitLedger(chain, metrics);
  const usedKeys = new UsedKeys(PERIOD_MS, nowMs);
  const trust = new SourceTrust({ nowMs, probation, nodes });
  return {
    ...{ unitsOf, ledger, usedKeys, trust },
    learning: new LearningBudget(learning, ledger, nowMs),
    sampleRate: new SampleRate({ nowMs, random: Math.random }),
    policy: new EconomicPolicy({ unitsOf, ledger, usedKeys, nowMs }),
    account: (source) => trust.guard(new BilledSource(source, ledger)),
  };
};
