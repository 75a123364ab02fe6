import type { HeadChange } from "../core/heads.ts";

type HeadListener = (change: HeadChange) => void;

/** The listeners to a chain's heads. */
export class HeadListeners {
  readonly #listeners = new Set<HeadListener>();
  readonly #onError: (error: unknown) => void;

  /** `onError` receives the errors of listeners. An error does not keep the change from other listeners. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  publish(change: HeadChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#onError(error);
      }
    }
  }

  /** Returns the function that removes the listener. */
  subscribe(listener: HeadListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Returns the next change. Rejects when the signal is aborted. */
  next(signal: AbortSignal): Promise<HeadChange> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<HeadChange>();
    const onAbort = (): void => reject(signal.reason);
    this.#listeners.add(resolve);
    signal.addEventListener("abort", onAbort, { once: true });
    return promise.finally(() => {
      this.#listeners.delete(resolve);
      signal.removeEventListener("abort", onAbort);
    });
  }
}
