import { setImmediate as turn } from "node:timers/promises";

type Waiting = (() => Promise<void>)[];

/** Runs one job at a time, because an engine runs one message at a time. */
export class EngineQueue {
  readonly #urgent: Waiting = [];
  readonly #idle: Waiting = [];
  #isRunning = false;

  /** Runs the job before all idle jobs that wait. */
  readonly urgent = <T>(job: () => Promise<T>): Promise<T> => this.#enter(this.#urgent, job);
  /** Runs the job when no urgent job waits. The thread receives its messages before. */
  readonly idle = <T>(job: () => Promise<T>): Promise<T> => this.#enter(this.#idle, job);

  #enter<T>(queue: Waiting, job: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      queue.push(() => job().then(resolve, reject));
      if (!this.#isRunning) {
        void this.#drain();
      }
    });
  }

  async #drain(): Promise<void> {
    this.#isRunning = true;
    for (;;) {
      if (this.#urgent.length === 0 && this.#idle.length > 0) {
        await turn();
      }
      const next = this.#urgent.shift() ?? this.#idle.shift();
      if (!next) {
        break;
      }
      await next();
    }
    this.#isRunning = false;
  }
}
