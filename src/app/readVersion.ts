import { readFileSync } from "node:fs";

/** Of the package that this file is part of. */
export const readVersion = (): string => {
  const manifest: { version?: unknown } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  return String(manifest.version);
};
