import type { z } from "zod";
import { createProcess, type Forebay } from "../../../src/app/main.ts";
import { configSchema } from "../../../src/config/schema.ts";
import { createTelemetry, type Telemetry } from "../../../src/telemetry/telemetry.ts";

type Input = z.input<typeof configSchema>;

/** A complete forebay in this process, on free ports. */
export interface Service {
  readonly url: string;
  readonly opsUrl: string;
  readonly telemetry: Telemetry;
  readonly chains: Forebay["chains"];
  /** Applies another configuration of the process to the same chains, or to chains with other options. */
  reload(rest: Omit<Input, "chains">, changed?: Partial<ServiceChain>): Promise<void>;
  close(): Promise<void>;
}

export type ServiceChain = Omit<Input["chains"][number], "name"> & { readonly name?: string };

/** Starts a service like createService, but resolves before the chains are known. `ready` resolves when they are. */
export const startService = async (
  chains: ServiceChain | readonly ServiceChain[],
  rest: Omit<Input, "chains"> = {},
): Promise<Service & { readonly ready: Promise<void> }> => {
  const list = Array.isArray(chains) ? chains : [chains];
  const configOf = (more: Omit<Input, "chains">, changed: Partial<ServiceChain> = {}) =>
    configSchema.parse({
      ...more,
      chains: list.map((chain: ServiceChain, index) => ({
        name: list.length === 1 ? "chain" : `chain${index + 1}`,
        ...chain,
        ...changed,
        // On a busy machine any read may be slow. A hedge would be a call that a test does not expect.
        upstream: { hedge: { maxShare: 0 }, ...chain.upstream, ...changed.upstream },
      })),
      server: { port: 0, opsPort: 0, drainDelayMs: 0, ...more.server },
      log: { level: "silent", ...more.log },
    });
  const config = configOf(rest);
  const telemetry = createTelemetry({ level: config.log.level });
  const forebay = await createProcess(config, telemetry);
  const { url, opsUrl, ready } = forebay;
  return {
    url,
    opsUrl,
    ready,
    telemetry,
    // A reload can replace them.
    get chains() {
      return forebay.chains;
    },
    reload: (more, changed) => forebay.reload(configOf(more, changed)),
    close: () => forebay.close(),
  };
};

/** Starts a service. Resolves when every chain has its genesis and a first head. `chains` is one chain or several. */
export const createService = async (...args: Parameters<typeof startService>): Promise<Service> => {
  const service = await startService(...args);
  await service.ready;
  return service;
};
