/** What was asked for cannot be executed here, because it is native on that chain or not known: a node must answer. */
export class NotExecutableError extends Error {
  override readonly name = "NotExecutable";
}
