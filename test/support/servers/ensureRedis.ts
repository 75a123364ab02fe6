import { spawnSync } from "node:child_process";

/** Names of the server. The tests need a real Redis: it is installed if possible, else the command to run is printed. */
const SERVERS = ["redis-server", "valkey-server"];
const INSTALL = "apt-get update && apt-get install -y --no-install-recommends redis-server";

const isInstalled = (server: string): boolean => spawnSync(server, ["--version"]).status === 0;

if (!SERVERS.some(isInstalled)) {
  const mayInstall = process.getuid?.() === 0 && isInstalled("apt-get");
  if (mayInstall) {
    const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" };
    spawnSync("sh", ["-c", INSTALL], { stdio: ["ignore", "ignore", "inherit"], env });
  }
  if (!SERVERS.some(isInstalled)) {
    process.stderr.write(`The tests need redis-server. Run as root: ${INSTALL}\n`);
    process.exitCode = 1;
  }
}
