import { readFileSync } from "node:fs";

/** Reads the version of the forebay package. */
export const readVersion = (): string => {
  const manifest: { version?: unknown } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return String(manifest.version);
};
