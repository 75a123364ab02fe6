import type { Metrics } from "../telemetry/telemetry.ts";

type LookupMethod = Parameters<Metrics["stateLookups"]["series"]>[0]["method"];

/** Counts reads and calls that known state could answer. The series are looked up once, because this is on the path of a hit. */
export class StateLookups<Method extends LookupMethod> {
  readonly #hits: ReadonlyMap<Method, { inc(): void }>;
  readonly #misses: ReadonlyMap<Method, { inc(): void }>;

  constructor(chain: string, { stateLookups }: Pick<Metrics, "stateLookups">, methods: readonly Method[]) {
    const seriesOf = (outcome: "hit" | "miss") =>
      new Map(methods.map((method) => [method, stateLookups.series({ chain, method, outcome })]));
    this.#hits = seriesOf("hit");
    this.#misses = seriesOf("miss");
  }

  count(method: Method, isHit: boolean): void {
    (isHit ? this.#hits : this.#misses).get(method)?.inc();
  }
}
