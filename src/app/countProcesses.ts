import { availableParallelism } from "node:os";
import type { Config } from "../config/schema.ts";

/** Returns the number of serving processes. */
export const countProcesses = ({ server: { processes } }: Pick<Config, "server">): number =>
  processes === "auto" ? availableParallelism() : processes;
