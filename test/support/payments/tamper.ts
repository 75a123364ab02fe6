/** The content of the header PAYMENT-SIGNATURE, as far as a test changes it. */
export interface SignedPayment {
  x402Version: number;
  accepted: { network: string; amount: string; maxTimeoutSeconds: number };
  payload: { signature: string; authorization: { value: string; to: string; nonce: string; from: string } };
}

/** Changes a payment after it was signed. */
export const tamper = (headers: Readonly<Record<string, string>>, change: (payment: SignedPayment) => void) => {
  const signed: SignedPayment = JSON.parse(Buffer.from(headers["PAYMENT-SIGNATURE"] ?? "", "base64").toString());
  change(signed);
  return { "PAYMENT-SIGNATURE": Buffer.from(JSON.stringify(signed)).toString("base64") };
};
