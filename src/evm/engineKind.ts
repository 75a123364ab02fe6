/**
 * How engines are chosen. `auto` compares a share of the runs with the reference engine; `fast` does not; `reference` executes with
 * the library alone.
 */
export const ENGINE_KINDS = ["auto", "fast", "reference"] as const;
export type EngineKind = (typeof ENGINE_KINDS)[number];
