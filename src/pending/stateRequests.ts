import type { BlockId } from "../core/heads.ts";
import type { StateKeys, StateValues } from "../core/stateReader.ts";
import type { PlainCall } from "../evm/reads/stateCalls.ts";
import type { FromExecutor } from "./executorMessages.ts";

/** The open requests of the executor's thread for state. The main thread answers them. */
export class StateRequests {
  readonly #send: (message: FromExecutor) => void;
  readonly #open = new Map<number, PromiseWithResolvers<StateValues>>();
  #lastId = 0;

  constructor(send: (message: FromExecutor) => void) {
    this.#send = send;
  }

  fetch(base: BlockId, keys: StateKeys, hint: readonly PlainCall[] | undefined): Promise<StateValues> {
    const id = ++this.#lastId;
    const request = Promise.withResolvers<StateValues>();
    this.#open.set(id, request);
    this.#send({ kind: "readState", id, base, keys, hint });
    return request.promise;
  }

  resolve(id: number, values: StateValues): void {
    this.#open.get(id)?.resolve(values);
    this.#open.delete(id);
  }

  reject(id: number, reason: string): void {
    this.#open.get(id)?.reject(new Error(reason));
    this.#open.delete(id);
  }

  rejectAll(reason: string): void {
    for (const { reject } of this.#open.values()) {
      reject(new Error(reason));
    }
    this.#open.clear();
  }
}
