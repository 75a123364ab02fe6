// Fails for each known vulnerability of a package, unless .ci/audit.json gives the reason why it does not concern forebay.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const audit = () => {
  try {
    return execFileSync("npm", ["audit", "--json"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch (error) {
    // npm ends with 1 if it found something, and if it could not ask.
    return error.stdout;
  }
};

const report = JSON.parse(audit());
if (report.vulnerabilities === undefined) {
  console.error(`the registry has no audit: ${report.message ?? "no report"}`);
  process.exit(process.env.AUDIT === "required" ? 1 : 0);
}
const exceptions = JSON.parse(readFileSync(new URL("audit.json", import.meta.url), "utf8"));
const advisories = new Map();
for (const { via } of Object.values(report.vulnerabilities)) {
  for (const advisory of via) {
    if (typeof advisory !== "string") {
      advisories.set(advisory.url, advisory);
    }
  }
}
const unexplained = [...advisories.values()].filter(({ url }) => !(url in exceptions));
for (const { severity, name, title, url } of unexplained) {
  console.error(`${severity}: ${name}: ${title} ${url}`);
}
for (const url of Object.keys(exceptions).filter((each) => !advisories.has(each))) {
  console.error(`the exception of ${url} is not needed any more`);
}
console.log(`${advisories.size} advisories, ${unexplained.length} without a reason`);
process.exitCode = unexplained.length === 0 ? 0 : 1;
