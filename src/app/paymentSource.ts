import { loadX402, localReservations, Payments, type Reserve, type X402 } from "../access/payment/payments.ts";
import { createUnitsOf, createUnitTable, type UnitsOf } from "../access/providerUnits.ts";
import { isValueLease, LeasedValues } from "../cache/leasedValues.ts";
import { connectRedis } from "../cache/redisClient.ts";
import { createScripts } from "../cache/redisCommands.ts";
import { RedisHealth } from "../cache/redisHealth.ts";
import type { Config } from "../config/schema.ts";
import type { RunScript } from "../core/sharedValues.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

const createUnits = ({ chains, usage: { prices, units } }: Config): ((chain: string, method: string) => number) => {
  const tables = new Map<string, UnitsOf>(
    chains.map(({ name, state }) => [name, createUnitsOf(createUnitTable(prices, units, state.units))]),
  );
  return (chain, method) => tables.get(chain)?.(method) ?? 0;
};

/** Reservations that all replicas share: leases that are never exchanged for a value. */
const sharedReservations = (run: RunScript): Reserve => {
  const leases = new LeasedValues(run);
  return async ({ id, seconds }) => {
    const taken = await leases.take(`forebay:payment1:${id}`, seconds * 1_000);
    return taken !== "held" && isValueLease(taken) ? () => taken.release() : undefined;
  };
};

/** Opens the connection of `access.payment.redis`. */
const connect = (url: string, telemetry: Telemetry) => {
  const client = connectRedis(url, "payments", telemetry.log);
  return { run: createScripts(client, new RedisHealth("script", telemetry)), close: () => client.disconnect() };
};

/** Creates the payments of each configuration. Their reservations continue after a reload. */
export class PaymentSource {
  readonly #telemetry: Telemetry;
  readonly #run: RunScript | undefined;
  #own: ReturnType<typeof connect> | undefined;
  #reserve: Reserve | undefined;
  #x402: X402 | undefined;

  /** `run` is that of the cache's Redis. */
  constructor(telemetry: Telemetry, run: RunScript | undefined) {
    this.#telemetry = telemetry;
    this.#run = run;
  }

  /** Loads the package if the configuration needs it. Rejects if it is not installed. */
  async load({ access: { payment } }: Config): Promise<void> {
    this.#x402 ??= payment && (await loadX402());
  }

  /** Returns undefined without `access.payment`. `load` must have been called for this configuration. */
  create(config: Config): Payments | undefined {
    const { payment } = config.access;
    if (payment === undefined) {
      return undefined;
    }
    if (this.#x402 === undefined) {
      throw new Error("the package of payments is not loaded");
    }
    this.#reserve ??= this.#openReservations(payment.redis);
    return new Payments({
      payment,
      x402: this.#x402,
      reserve: this.#reserve,
      maxBatch: config.server.maxBatch,
      unitsOf: createUnits(config),
      telemetry: this.#telemetry,
    });
  }

  close(): void {
    this.#own?.close();
  }

  #openReservations(redis: string | undefined): Reserve {
    this.#own = redis === undefined ? undefined : connect(redis, this.#telemetry);
    const run = this.#own?.run ?? this.#run;
    return run === undefined ? localReservations() : sharedReservations(run);
  }
}
