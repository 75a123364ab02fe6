import type { Check } from "../core/node.ts";
import { type Finding, failed } from "./findings.ts";
import { MalformedField } from "./jsonFields.ts";

/** Runs a check. A malformed field of the response is a failed check. */
export const failIfMalformed = (check: Check, find: () => Finding): Finding => {
  try {
    return find();
  } catch (error) {
    if (error instanceof MalformedField) {
      return failed(check);
    }
    throw error;
  }
};
