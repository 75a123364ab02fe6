import { createHash } from "node:crypto";
import { STATUS_PAGE_SCRIPT } from "./statusPageScript.ts";
import { STATUS_PAGE_STYLE } from "./statusPageStyle.ts";

const sourceHash = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Nothing but this page's own script and style may run, and it may ask nobody but us (CSP level 3, hash sources). */
const POLICY = [
  "default-src 'none'",
  `script-src ${sourceHash(STATUS_PAGE_SCRIPT)}`,
  // The bars' width is set through the CSSOM, which this allows; style attributes would be refused.
  `style-src ${sourceHash(STATUS_PAGE_STYLE)}`,
  "connect-src 'self'",
  "img-src data:",
].join("; ");

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>forebay</title>
<style>${STATUS_PAGE_STYLE}</style>
</head>
<body>
<header><h1>forebay</h1><span id="about"></span><span id="state" role="status">connecting</span></header>
<main></main>
<noscript><p>This page is drawn by a script. The same as JSON: <a href="./status.json">status.json</a></p></noscript>
<script>${STATUS_PAGE_SCRIPT}</script>
</body>
</html>
`;

/** `GET /` for a browser: one self-contained page that draws `./status.json` (`Status`). */
export const statusPage = (): string => PAGE;
