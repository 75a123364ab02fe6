/** Counts what one request holds until its response is sent. */
export interface ResultMemory {
  /** Counts the calls of a batch, of which `running` are in flight at a time. Returns false if there is no room. */
  holdCalls(calls: number, running: number): boolean;
  /** Counts a result. Returns false if there is no room in the memory budget. A result counts once. */
  hold(result: Uint8Array): boolean;
  /** A result is sent. */
  drop(result: Uint8Array): void;
  /** Counts bytes of a response that waits as a whole. Returns false if there is no room. */
  holdResponse(bytes: number): boolean;
}
