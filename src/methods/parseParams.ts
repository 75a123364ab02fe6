import { invalidParams } from "../jsonrpc/rpcError.ts";
import type { CanonicalJson, ParamSpec } from "./paramSpec.ts";

/** Parses params into canonical values, in order, without trailing optional ones that have no value. Throws -32602. */
export const parseParams = (params: readonly unknown[], readers: readonly ParamSpec[]): readonly CanonicalJson[] => {
  if (params.length > readers.length) {
    throw invalidParams(`too many arguments, want at most ${readers.length}`);
  }
  const values: CanonicalJson[] = [];
  for (let index = 0; index < readers.length; index++) {
    const reader = readers[index];
    if (reader === undefined) {
      continue;
    }
    const value = params[index];
    if (value !== undefined && !(value === null && reader.optional)) {
      values.push(reader.read(value, reader.name));
    } else if (!reader.optional) {
      throw invalidParams(`missing value for required argument ${index}: ${reader.name}`);
    } else {
      values.push(reader.fallback ?? null);
    }
  }
  while (values.length > 0 && values.at(-1) === null) {
    values.pop();
  }
  return values;
};
