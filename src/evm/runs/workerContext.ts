import type { Rules } from "../../ethereum/rules.ts";
import type { Engine } from "../engine.ts";
import type { StepHost } from "../reads/steppedRun.ts";

/** The part of the thread that a run uses. */
export interface WorkerContext extends StepHost {
  engine(rules: Rules): Engine;
}
