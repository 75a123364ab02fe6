import { tooLarge } from "../jsonrpc/response.ts";
import type { SimulatedCall } from "./simulateCall.ts";

/** Text of a call without its bytes and logs, and of a log without its data. */
const CALL_BYTES = 160;
const LOG_BYTES = 480;
const TOPIC_BYTES = 69;
/** Text of a whole transaction without its input. */
const TRANSACTION_BYTES = 900;

/** Limits the text of a simulation's result while it executes. */
export class OutputLimit {
  readonly #maxBytes: number;
  readonly #returnsFullTransactions: boolean;
  #bytes = 0;

  constructor(maxBytes: number, returnsFullTransactions: boolean) {
    this.#maxBytes = maxBytes;
    this.#returnsFullTransactions = returnsFullTransactions;
  }

  /** Counts a call. Throws RpcError above the limit. */
  add({ result: { returnData, logs }, message }: SimulatedCall): void {
    this.#bytes += CALL_BYTES + 2 * returnData.length;
    for (const { topics, data } of logs) {
      this.#bytes += LOG_BYTES + TOPIC_BYTES * topics.length + data.length;
    }
    if (this.#returnsFullTransactions) {
      this.#bytes += TRANSACTION_BYTES + 2 * message.input.length;
    }
    if (this.#bytes > this.#maxBytes) {
      throw tooLarge(this.#maxBytes);
    }
  }
}
