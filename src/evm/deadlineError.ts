/** The deadline of an execution has passed. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";

  constructor() {
    super("the deadline of the execution has passed");
  }
}
