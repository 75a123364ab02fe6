import { Session } from "node:inspector/promises";

interface Counted {
  readonly functions: number;
  readonly called: number;
}

/** Counts which functions of `src` are called. It must start before their modules are loaded. */
export class Coverage {
  readonly #session = new Session();

  static async start(): Promise<Coverage> {
    const coverage = new Coverage();
    coverage.#session.connect();
    await coverage.#session.post("Profiler.enable");
    await coverage.#session.post("Profiler.startPreciseCoverage", { callCount: false, detailed: false });
    return coverage;
  }

  /** Returns, for each folder, how many of its functions were called. */
  async take(folders: readonly string[]): Promise<Readonly<Record<string, string>>> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    this.#session.disconnect();
    const shares = folders.map((folder) => {
      const files = result.filter(({ url }) => url.includes(`/src/${folder}`));
      const { functions, called } = files
        .flatMap((file) => file.functions)
        .reduce<Counted>(
          (sum, { ranges }) => ({
            functions: sum.functions + 1,
            called: sum.called + ((ranges[0]?.count ?? 0) > 0 ? 1 : 0),
          }),
          { functions: 0, called: 0 },
        );
      return [folder, `${called} of ${functions} functions`] as const;
    });
    return Object.fromEntries(shares);
  }
}
