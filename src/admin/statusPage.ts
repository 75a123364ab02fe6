import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const readPart = (name: string): string => readFileSync(new URL(`page/${name}`, import.meta.url), "utf8");

const sourceHash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Allows only this script and style, and only requests to the own origin of the page (CSP level 3, hash sources). */
const createPolicy = (script: string, style: string): string =>
  [
    "default-src 'none'",
    `script-src ${sourceHash(script)}`,
    // This allows a width that the script sets through the CSSOM, but no style attributes.
    `style-src ${sourceHash(style)}`,
    "connect-src 'self'",
    "img-src data:",
  ].join("; ");

/** Returns the HTML of `GET /` for a browser: one self-contained page that draws `./status.json` (see Status). */
export const statusPage = (): string => {
  const script = readPart("page.js");
  const style = readPart("page.css");
  return readPart("page.html")
    .replace("POLICY", createPolicy(script, style))
    .replace("/* page.css */", () => style)
    .replace("/* page.js */", () => script);
};
