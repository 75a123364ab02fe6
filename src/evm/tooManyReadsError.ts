/** A run reads more values than it may fetch. */
export class TooManyReadsError extends Error {
  override readonly name = "TooManyReadsError";
}
