import type { ReadSet } from "../../../src/core/readSet.ts";

/** Formats a read set as one line for each key, in an order that does not depend on the run. */
export const formatReads = ({ accounts, blockHashes, environment }: ReadSet): readonly string[] =>
  [
    ...accounts.flatMap(({ address, fields, slots }) => [
      ...fields.map((field) => `${field} ${address}`),
      ...slots.map((slot) => `slot ${address} ${slot}`),
    ]),
    ...blockHashes.map((number) => `block hash ${number}`),
    ...environment,
  ].sort();
