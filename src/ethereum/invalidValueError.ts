/** A value does not have the form that the execution API defines. The text says so to its sender. */
export class InvalidValueError extends Error {
  override readonly name = "InvalidValueError";
}
