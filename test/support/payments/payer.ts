import { x402Client, x402HTTPClient } from "@x402/core/client";
import type { PaymentRequired, PaymentRequirements, SettleResponse } from "@x402/core/types";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import type { Address, Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { NETWORK } from "./token.ts";

/** The third account of a development node. */
const KEY: Hex = "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a";

export interface RpcBody {
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: RpcBody;
  readonly items: readonly RpcBody[];
}

/** Sends a body with a payment, or without one. */
export const post = async (
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  const parsed: RpcBody | readonly RpcBody[] = JSON.parse((await response.text()) || "{}");
  const items = Array.isArray(parsed) ? parsed : [];
  return {
    status: response.status,
    headers: response.headers,
    body: Array.isArray(parsed) ? {} : (parsed as RpcBody),
    items,
  };
};

/** A call of a method, or of several in a batch. */
export const call = (method: string, params: readonly unknown[] = [], id: unknown = 1) => ({
  jsonrpc: "2.0",
  id,
  method,
  params,
});

export const chainId = call("eth_chainId");

/** A client with the published packages of x402. */
export class Payer {
  readonly address: Address;
  readonly #client: x402HTTPClient;

  constructor() {
    const account = privateKeyToAccount(KEY);
    this.address = account.address;
    const client = new x402Client().register(NETWORK, new ExactEvmScheme(account)).setSpendControls(false);
    this.#client = new x402HTTPClient(client);
  }

  /** Reads the challenge of a response. */
  challengeOf({ headers }: Answer): PaymentRequired {
    return this.#client.getPaymentRequiredResponse((name) => headers.get(name));
  }

  /** Reads the terms that a response asks for. */
  termsOf(answer: Answer): PaymentRequirements {
    const [terms] = this.challengeOf(answer).accepts;
    if (terms === undefined) {
      throw new Error("the challenge has no terms");
    }
    return terms;
  }

  /** Signs a payment for the terms of a challenge, or for changed ones. Returns the header of the request. */
  async sign(answer: Answer, change: Partial<PaymentRequirements> = {}): Promise<Record<string, string>> {
    const challenge = this.challengeOf(answer);
    const accepts = challenge.accepts.map((terms) => ({ ...terms, ...change }));
    return this.#client.encodePaymentSignatureHeader(
      await this.#client.createPaymentPayload({ ...challenge, accepts }),
    );
  }

  /** Asks for the price of a body and signs a payment for it. */
  async payFor(url: string, body: unknown): Promise<Record<string, string>> {
    return this.sign(await post(url, body));
  }

  /** Sends a body, and again with a payment if the response asks for it. */
  async send(url: string, body: unknown): Promise<Answer> {
    return post(url, body, await this.payFor(url, body));
  }

  receiptOf({ headers }: Answer): SettleResponse {
    return this.#client.getPaymentSettleResponse((name) => headers.get(name));
  }
}
