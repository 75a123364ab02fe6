import type { StateKey } from "../stateKey.ts";

/** A run needs values that are not known. */
export class MissingValuesError extends Error {
  override readonly name = "MissingValuesError";
  readonly keys: readonly StateKey[];

  constructor(keys: readonly StateKey[]) {
    super(`${keys.length} values are not known`);
    this.keys = keys;
  }
}
