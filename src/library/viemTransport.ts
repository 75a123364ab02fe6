import { type CustomTransport, custom } from "viem";
import type { ForebayLibrary } from "./library.ts";

/**
 * Creates a transport of viem that sends its requests to forebay in this process. If several chains are configured, those
 * of a client go to the one that has the chain id of the client. forebay makes the retries.
 */
export const forebayTransport = (forebay: Pick<ForebayLibrary, "chains" | "request" | "chain">): CustomTransport => {
  return (parameters) => {
    const { chain } = parameters;
    const provider = chain === undefined || forebay.chains.length === 1 ? forebay : forebay.chain(chain.id);
    return custom(provider, { key: "forebay", name: "forebay", retryCount: 0 })(parameters);
  };
};
