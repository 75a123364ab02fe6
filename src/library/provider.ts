/** The arguments of a request: EIP-1193, "request". */
export interface RequestArguments {
  readonly method: string;
  readonly params?: readonly unknown[] | object | undefined;
}

/** A provider of EIP-1193 without events. */
export interface EthereumProvider {
  /** Resolves with the result, a JSON value. Rejects with ProviderRpcError. */
  request(args: RequestArguments): Promise<unknown>;
}

/** An error of `request`, as EIP-1193, "Provider Errors", defines it. Code, message and data are those of the JSON-RPC error. */
export class ProviderRpcError extends Error {
  override readonly name = "ProviderRpcError";
  readonly code: number;
  /** A JSON value, such as the data of a revert. Undefined if the error has none. */
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

/** EIP-1193, "Provider Errors": the provider is disconnected from all chains. */
const DISCONNECTED = 4900;

export const closedError = (): ProviderRpcError => new ProviderRpcError(DISCONNECTED, "forebay is closed");
