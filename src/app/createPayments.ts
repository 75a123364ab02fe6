import { Facilitator, loadX402, type X402 } from "../access/payment/facilitator.ts";
import { Payments } from "../access/payment/payment.ts";
import {
  createLocalReservations,
  createSharedReservations,
  type Reservations,
} from "../access/payment/reservations.ts";
import { connectRedis } from "../cache/redisClient.ts";
import { createScripts } from "../cache/redisCommands.ts";
import type { Config } from "../config/schema.ts";
import type { RunScript } from "../core/sharedValues.ts";
import { createUnitsOf, createUnitTable, type UnitsOf } from "../state/providerUnits.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

/** Creates payments from a configuration. */
export interface PaymentSource {
  /** Returns undefined without `access.payment`. `load` must have been called for this configuration. */
  create(config: Config): Payments | undefined;
  close(): void;
  /** Loads the package if the configuration needs it. Rejects if it is not installed. */
  load(config: Config): Promise<void>;
}

const createUnits = ({ chains, usage: { prices, units } }: Config): ((chain: string, method: string) => number) => {
  const tables = new Map<string, UnitsOf>(
    chains.map(({ name, state }) => [name, createUnitsOf(createUnitTable(prices, units, state.units))]),
  );
  return (chain, method) => tables.get(chain)?.(method) ?? 0;
};

/** Opens the connection of `access.payment.redis`. */
const connect = (url: string, telemetry: Telemetry) => {
  const client = connectRedis(url, "payments", telemetry.log);
  return { run: createScripts(client, telemetry), close: () => client.disconnect() };
};

/** Creates the source of payments. Reservations continue after a reload. `run` is that of the cache's Redis. */
export const createPaymentSource = (telemetry: Telemetry, run: RunScript | undefined): PaymentSource => {
  let own: ReturnType<typeof connect> | undefined;
  let reservations: Reservations | undefined;
  let x402: X402 | undefined;
  return {
    close: () => own?.close(),
    load: async ({ access: { payment } }) => {
      x402 ??= payment && (await loadX402());
    },
    create: (config) => {
      const { payment } = config.access;
      if (payment === undefined) {
        return undefined;
      }
      if (x402 === undefined) {
        throw new Error("the package of payments is not loaded");
      }
      if (reservations === undefined) {
        own = payment.redis === undefined ? undefined : connect(payment.redis, telemetry);
        const shared = own?.run ?? run;
        reservations = shared === undefined ? createLocalReservations() : createSharedReservations(shared);
      }
      return new Payments({
        payment,
        x402,
        facilitator: new Facilitator(payment.facilitator, x402, telemetry),
        reservations,
        maxBatch: config.server.maxBatch,
        unitsOf: createUnits(config),
        telemetry,
      });
    },
  };
};
