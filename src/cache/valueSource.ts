/** The node that stated a value which no hash proves. All values that it stated for a chain share the object. */
export interface ValueSource {
  readonly node: string;
  /** See `Node`. */
  readonly origin: string;
  /** The values that the node stated up to this time are not served. Milliseconds since 1970; 0 if it was not found lying. */
  liedAtMs: number;
}
