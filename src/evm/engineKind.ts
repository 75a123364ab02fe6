import type { ModuleKind } from "./fast/fastModule.ts";

/** `reference` is the unmodified library. */
export const ENGINE_KINDS = ["fast", "reference"] as const;
export type EngineKind = (typeof ENGINE_KINDS)[number];

export interface EngineOptions {
  /** Reports whether the deadline of the running execution has passed. The fast engine throws DeadlineError then. */
  isLate?(): boolean;
  /** The module that the thread will need. It is loaded, and its first run is done, before the engines are returned. */
  readonly module?: ModuleKind | undefined;
}
