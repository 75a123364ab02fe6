/** Shared memory with one number: the id of the newest job that must end. */
export type JobInterrupts = Int32Array<SharedArrayBuffer>;

export const createInterrupts = (): JobInterrupts =>
  new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));

/** From a WorkerPool to a thread. */
export type ToJobThread =
  | { readonly kind: "run"; readonly id: number; readonly input: unknown; readonly interrupts: JobInterrupts }
  | { readonly kind: "reply"; readonly id: number; readonly value: unknown }
  /** The request could not be answered. The job fails. */
  | { readonly kind: "noReply"; readonly id: number };

/** From a thread to its WorkerPool. `id` is the job's. */
export type FromJobThread =
  /** The job needs a value from the main thread. */
  | { readonly kind: "request"; readonly id: number; readonly request: unknown }
  | { readonly kind: "done"; readonly id: number; readonly output: unknown }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };
