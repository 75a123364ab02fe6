/** The call cannot be executed here, because the code is not in the EVM, or its rules are not known. A node must answer. */
export class MustForwardError extends Error {
  override readonly name = "MustForwardError";
}
