/** forebay cannot execute the request, because it needs a native contract or an unknown feature. A node must answer it. */
export class NotExecutableError extends Error {
  override readonly name = "NotExecutable";
}
