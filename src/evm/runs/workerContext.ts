import type { Rules } from "../../ethereum/rules.ts";
import type { Engine } from "../engine.ts";
import type { StepHost } from "../reads/steppedRun.ts";

/** What a run uses of its thread. */
export interface WorkerContext extends StepHost {
  engine(rules: Rules): Engine;
}
