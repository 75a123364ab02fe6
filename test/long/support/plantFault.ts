import { plantEdits } from "../../support/plantEdits.ts";
import { PLANTED_FAULTS } from "./plantedFaults.ts";

/** Preloaded with `--import` in a process and its threads. */
const name = process.env.FAULT ?? "";
plantEdits(name, PLANTED_FAULTS[name]?.edits ?? []);
