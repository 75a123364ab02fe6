/** Why a pool did not complete a job. */
export type WorkerPoolFailure =
  /** Too many jobs wait. */
  | "queueFull"
  /** The job waited for its whole time limit. */
  | "queueTimeout"
  /** The job ran for its whole time limit. */
  | "deadline"
  /** The thread ended, or the job threw. `cause` has the error. */
  | "failed"
  | "closed";

export class WorkerPoolError extends Error {
  override readonly name = "WorkerPoolError";
  readonly reason: WorkerPoolFailure;

  constructor(reason: WorkerPoolFailure, options?: ErrorOptions) {
    super(`a worker pool did not complete a job: ${reason}`, options);
    this.reason = reason;
  }
}
