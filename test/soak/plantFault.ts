import { plantEdits } from "../support/plantEdits.ts";
import { plantedFaultOf } from "./plantedFaults.ts";

/** Preloaded with `--import` in a replica of the soak. */
const name = process.env.FAULT ?? "";
plantEdits(name, plantedFaultOf(name).edits);
