import { createHash } from "node:crypto";
import type { ChainConfig } from "../config/schema.ts";

/** Returns the key of a chain between processes. A chain with another configuration has another key. */
export const chainKey = (config: ChainConfig): string =>
  createHash("sha256").update(JSON.stringify(config)).digest("hex");
