/** A token with transferWithAuthorization (EIP-3009). Name and version are those of its EIP-712 domain. */
export interface PaymentAsset {
  readonly address: string;
  readonly name: string;
  readonly version: string;
  readonly decimals: number;
}

/** Prices in whole tokens, as decimal text. Exactly one of `default` and `perUnit` is set. */
export interface PriceOptions {
  /** Price of a call. */
  readonly default?: string | undefined;
  /** Price of a provider unit. A call costs the units of its method. */
  readonly perUnit?: string | undefined;
  /** Prices of single methods, or of `debug_*`. The longest match counts. */
  readonly methods: Readonly<Record<string, string>>;
}

export interface FacilitatorOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Deadline of a verification. */
  readonly timeoutMs: number;
  /** Deadline of one attempt to settle. */
  readonly settleTimeoutMs: number;
  /** Verifications at a time, and settlements at a time. */
  readonly maxConcurrent: number;
}

export interface PaymentOptions {
  readonly payTo: string;
  /** CAIP-2, such as `eip155:8453`. */
  readonly network: `${string}:${string}`;
  readonly asset: PaymentAsset;
  readonly price: PriceOptions;
  readonly maxTimeoutSeconds: number;
  /** URL of this service in challenges. Default: from the request's Host header. */
  readonly publicUrl?: string | undefined;
  readonly facilitator: FacilitatorOptions;
}
