import { plantEdits } from "../../support/plantEdits.ts";

/** Preloaded with `--import` in a process and its threads: the reference engine counts one unit of gas too many. */
plantEdits("wrong gas", [
  {
    file: "src/evm/reference/referenceEngine.ts",
    from: "gasUsed: totalGasSpent,",
    to: "gasUsed: totalGasSpent + 1n,",
  },
]);
