import type { Answer } from "../chain/source.ts";
import { type Asked, forwarded, type Method } from "./chain.ts";
import { readData, required } from "./reader.ts";
import { readParams } from "./readParams.ts";

/** A write: sent once, as it came. The hash that comes back is known to exist from then on, whatever a slower node says. */
export const eth_sendRawTransaction: Method = {
  name: "eth_sendRawTransaction",
  kept: "never",
  atPending: "none",
  answer: async (asked: Asked): Promise<Answer> => {
    const [raw] = readParams(asked.call.params, [required("transaction", readData)]);
    const answer = await forwarded(asked);
    asked.chain.accepted(String(raw));
    return answer;
  },
};
