/** The reason why calls are counted that no handler ran. */
export type ChargeReason = "stateReads" | "invalid" | "method" | "key" | "payment";

/** Counts calls against the client's rate limits. It rejects nothing: the client's next calls find a smaller rest. */
export type Charge = (calls: number, reason: ChargeReason) => void;
