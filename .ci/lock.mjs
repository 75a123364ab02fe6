// Writes package-lock.json anew. npm leaves out optional packages of other platforms that the registry in use does not have,
// and `npm ci` then refuses the lock: they are entered here, as npm enters them elsewhere, and fetched only on their platform.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const OS = { android: "android", darwin: "darwin", linux: "linux", linuxmusl: "linux", win32: "win32", windows: "win32", freebsd: "freebsd", openbsd: "openbsd", wasm32: undefined };
const CPU = { arm64: "arm64", amd64: "x64", x64: "x64", arm: "arm", ia32: "ia32", ppc64: "ppc64", riscv64: "riscv64", s390x: "s390x", wasm32: "wasm32" };

/** `cli-linux-x64-musl` -> os linux, cpu x64, libc musl. */
const platformOf = (name) => {
  const words = name.split(/[-/]/);
  const os = words.map((word) => OS[word]).find(Boolean);
  const cpu = words.map((word) => CPU[word]).find(Boolean);
  const libc = words.some((word) => word.startsWith("musl")) ? "musl" : words.includes("gnu") || words.includes("gnueabihf") ? "glibc" : undefined;
  return { ...(os && { os: [os] }), ...(cpu && { cpu: [cpu] }), ...(libc && { libc: [libc] }) };
};

const root = new URL("..", import.meta.url);
const folder = mkdtempSync(join(tmpdir(), "lock-"));
try {
  writeFileSync(join(folder, "package.json"), readFileSync(new URL("package.json", root)));
  execFileSync("npm", ["install", "--package-lock-only", "--ignore-scripts"], { cwd: folder, stdio: "inherit" });
  const lock = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8"));
  for (const [place, entry] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(place === "" ? {} : (entry.optionalDependencies ?? {}))) {
      const here = `node_modules/${name}`;
      if (lock.packages[here] || lock.packages[`${place}/${here}`] || !/^\d/.test(version)) continue;
      lock.packages[here] = { version, ...platformOf(name), ...(entry.dev && { dev: true }), optional: true };
    }
  }
  lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(new URL("package-lock.json", root), `${JSON.stringify(lock, null, 2)}\n`);
} finally {
  rmSync(folder, { recursive: true });
}
