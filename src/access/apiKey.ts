import type { MethodRules } from "./methodRules.ts";
import type { Limit } from "./rateLimits.ts";

/** The rights of a configured key, or of a token. */
export interface ApiKey extends MethodRules {
  readonly name: string;
  /** SHA-256 of the key, in hex. Only the owner has the key itself. */
  readonly sha256: string;
  /** Names of the only chains that the key may use. Default: all. */
  readonly chains?: readonly string[] | undefined;
  /** From this time on, in ISO 8601, the key is refused. */
  readonly expires?: string | undefined;
  /** Replaces the limit for all keys. */
  readonly limit?: Limit | undefined;
}
