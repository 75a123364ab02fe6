import type { PaymentOptions } from "../access/payment/challenge.ts";
import { createFacilitatorClient, loadX402, X402_VERSION } from "../access/payment/facilitator.ts";
import { connectionFault, connectionHint } from "../core/connectionFault.ts";
import { CHECK_TIMEOUT_MS, type CheckResult, checked, withHint } from "./checkResult.ts";

/** The library names the URL in no error. Its texts about HTTP have the status, and an excerpt of the body. */
const STATUS = /\((\d{3})\)/;

const reasonOf = (host: string, error: unknown): string => {
  const status = error instanceof Error ? STATUS.exec(error.message)?.[1] : undefined;
  if (status !== undefined) {
    return `${host}: HTTP status ${status}`;
  }
  const fault = connectionFault(error);
  return withHint(`${host}: ${fault}`, connectionHint(fault));
};

/** Asks the facilitator which payments it settles. Never rejects. */
export const checkFacilitator = ({
  network,
  facilitator,
}: Pick<PaymentOptions, "network" | "facilitator">): Promise<CheckResult> => {
  const { host } = new URL(facilitator.url);
  const run = async (): Promise<Omit<CheckResult, "subject">> => {
    const client = createFacilitatorClient(await loadX402(), facilitator, CHECK_TIMEOUT_MS);
    const { kinds } = await client.getSupported();
    const isSupported = kinds.some(
      (kind) =>
        kind.x402Version === X402_VERSION &&
        kind.scheme === "exact" &&
        (kind.network === network || kind.network === "eip155:*"),
    );
    return isSupported
      ? { level: "ok", text: `${host}: settles x402 version 2, scheme exact, on ${network}` }
      : { level: "fault", text: `${host}: does not settle x402 version 2, scheme exact, on ${network}` };
  };
  return checked("facilitator", run, (error) => reasonOf(host, error));
};
