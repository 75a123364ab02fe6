/** After a wrong response, a node is used only if no other node can be used, for this time. */
const SUSPENDED_MS = 30_000;

export interface SuspensionOptions {
  readonly durationMs?: number;
  onChange(isSuspended: boolean): void;
}

/** Whether a node is suspended. Each new reason starts the time again. */
export class Suspension {
  readonly #options: SuspensionOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SuspensionOptions) {
    this.#options = options;
  }

  get isActive(): boolean {
    return this.#timer !== undefined;
  }

  begin(): void {
    const wasActive = this.isActive;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(), this.#options.durationMs ?? SUSPENDED_MS).unref();
    if (!wasActive) {
      this.#options.onChange(true);
    }
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #end(): void {
    this.#timer = undefined;
    this.#options.onChange(false);
  }
}
