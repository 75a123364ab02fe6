/** Histogram buckets for durations, in seconds. */
export const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Histogram buckets for sizes, in bytes. */
export const BYTES = [256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 16_777_216, 134_217_728];

/** Histogram buckets for small counts. */
export const COUNTS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024];
