import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { readValues } from "../../helm/valuesTable.ts";
import { CHART, CLUSTER, hasHelm, refusalOf, runHelm } from "./helm.ts";

const skip = !hasHelm && "no helm";

/** Paths of all values without members. */
const pathsOf = (value: unknown, path: string): readonly string[] =>
  typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
    ? Object.entries(value).flatMap(([key, item]) => pathsOf(item, path === "" ? key : `${path}.${key}`))
    : [path];

test("the README of the chart has every value, with its meaning", () => {
  const readme = readFileSync(new URL("README.md", CHART), "utf8");
  const rows = readValues();
  assert.deepEqual(
    rows.filter(({ meaning }) => meaning === ""),
    [],
  );
  const missing = pathsOf(parse(readFileSync(new URL("values.yaml", CHART), "utf8")), "").filter(
    (path) => !rows.some((row) => path === row.path || path.startsWith(`${row.path}.`)),
  );
  assert.deepEqual(missing, []);
  for (const { path, meaning } of rows) {
    assert.ok(readme.includes(`| \`${path}\` |`), path);
    assert.ok(readme.includes(`| ${meaning} |`), path);
  }
});

/** Renders the chart, and returns its objects by kind. A later object of one kind replaces an earlier one. */
const render = (...args: readonly string[]): ReadonlyMap<string, unknown> =>
  new Map(
    parseAllDocuments(runHelm("template", "release", ...CLUSTER, ...args, "."))
      .map((document) => document.toJS())
      .filter((content) => content !== null && !String(content.metadata.name).endsWith("-ops"))
      .map((content) => [content.kind, content]),
  );

/** The value at a path such as `spec.ports.0.nodePort`. */
const at = (object: unknown, path: string): unknown =>
  path
    .split(".")
    .reduce<unknown>(
      (value, key) => (typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined),
      object,
    );

const POD = "spec.template.spec";
/** Where a value of ci/every-value-values.yaml is in the objects. */
const USES: readonly (readonly [value: string, kind: string, path: string])[] = [
  ["strategy", "Deployment", "spec.strategy"],
  ["minReadySeconds", "Deployment", "spec.minReadySeconds"],
  ["revisionHistoryLimit", "Deployment", "spec.revisionHistoryLimit"],
  ["initContainers", "Deployment", `${POD}.initContainers`],
  ["extraContainers.0", "Deployment", `${POD}.containers.1`],
  ["extraArgs.0", "Deployment", `${POD}.containers.0.args.2`],
  ["lifecycle", "Deployment", `${POD}.containers.0.lifecycle`],
  ["hostAliases", "Deployment", `${POD}.hostAliases`],
  ["dnsConfig", "Deployment", `${POD}.dnsConfig`],
  ["service.nodePort", "Service", "spec.ports.0.nodePort"],
  ["service.loadBalancerClass", "Service", "spec.loadBalancerClass"],
  ["service.loadBalancerSourceRanges", "Service", "spec.loadBalancerSourceRanges"],
  ["service.externalTrafficPolicy", "Service", "spec.externalTrafficPolicy"],
  ["ingress.paths.0.path", "Ingress", "spec.rules.0.http.paths.0.path"],
  ["ingress.paths.1.path", "Ingress", "spec.rules.0.http.paths.1.path"],
  ["ingress.paths.1.pathType", "Ingress", "spec.rules.0.http.paths.1.pathType"],
  ["networkPolicy.egress", "NetworkPolicy", "spec.egress"],
  ["autoscaling.metrics.0", "HorizontalPodAutoscaler", "spec.metrics.1"],
  ["autoscaling.behavior", "HorizontalPodAutoscaler", "spec.behavior"],
  ["serviceMonitor.scrapeTimeout", "ServiceMonitor", "spec.endpoints.0.scrapeTimeout"],
  ["serviceMonitor.relabelings", "ServiceMonitor", "spec.endpoints.0.relabelings"],
  ["serviceMonitor.metricRelabelings", "ServiceMonitor", "spec.endpoints.0.metricRelabelings"],
];

test("the templates use the values of pods, services, scaling and scrapes", { skip }, () => {
  const file = "ci/every-value-values.yaml";
  const values: unknown = parse(readFileSync(new URL(file, CHART), "utf8"));
  const objects = render("--values", file);
  for (const [value, kind, path] of USES) {
    assert.notEqual(at(values, value), undefined, value);
    assert.deepEqual(at(objects.get(kind), path), at(values, value), value);
  }
  assert.deepEqual(at(objects.get("NetworkPolicy"), "spec.policyTypes"), ["Ingress", "Egress"]);
});

test("without these values, objects have the fields of before", { skip }, () => {
  const enabled = ["autoscaling", "networkPolicy", "serviceMonitor"].flatMap((name) => [
    "--set",
    `${name}.enabled=true`,
  ]);
  const objects = render(
    "--values",
    "ci/one-chain-values.yaml",
    ...enabled,
    "--set",
    "ingress.enabled=true,ingress.hosts={a}",
  );
  const fields = (kind: string, path: string) => Object.keys(Object(at(objects.get(kind), path)));
  assert.deepEqual(at(objects.get("Deployment"), "spec.strategy"), {
    type: "RollingUpdate",
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 },
  });
  for (const field of ["initContainers", "hostAliases", "dnsConfig"]) {
    assert.ok(!fields("Deployment", POD).includes(field), field);
  }
  assert.equal(at(objects.get("Deployment"), `${POD}.containers.1`), undefined);
  assert.deepEqual(fields("Service", "spec"), ["type", "sessionAffinity", "selector", "ports"]);
  assert.deepEqual(fields("Service", "spec.ports.0"), ["name", "port", "targetPort", "protocol"]);
  assert.deepEqual(at(objects.get("Ingress"), "spec.rules.0.http.paths.0.path"), "/");
  assert.deepEqual(at(objects.get("NetworkPolicy"), "spec.policyTypes"), ["Ingress"]);
  assert.deepEqual(fields("ServiceMonitor", "spec.endpoints.0"), ["port", "path", "interval"]);
  assert.deepEqual(fields("HorizontalPodAutoscaler", "spec"), [
    "scaleTargetRef",
    "minReplicas",
    "maxReplicas",
    "metrics",
  ]);
});

for (const value of [
  "extraArg={--help}",
  "service.nodePorts=30000",
  "service.externalTrafficPolicy=local",
  "autoscaling.behaviour.a=b",
  "serviceMonitor.relabeling[0].action=drop",
  "ingress.paths[0].path=/,ingress.paths[0].pathType=prefix",
  "networkPolicy.egres[0].to=a",
]) {
  test(`helm refuses the misspelt value ${value}`, { skip }, () => {
    const name = (value.split(",").at(-1) ?? "").split(/[=[{]/)[0]?.split(".").at(-1) ?? "";
    assert.match(refusalOf("--values", "ci/one-chain-values.yaml", "--set", value), new RegExp(name));
  });
}
