import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { alertsWithThreshold } from "../../grafana/thresholds.ts";
import { valuesSchema } from "../../helm/values.ts";
import { configSchema } from "../../src/config/schema.ts";
import { STATE_SAVE_MS } from "../../src/state/rows/stateRows.ts";
import { FOLDER_CLOSE_MS } from "../../src/storage/dataStorage.ts";
import { CHART, CLUSTER, hasHelm, LINT_CLUSTER, refusalOf, runHelm } from "./helm.ts";
import { kubernetesObject } from "./kubernetesObject.ts";
import { isMapping, mergeValues } from "./mergeValues.ts";

const read = (path: string): unknown => parse(readFileSync(new URL(path, CHART), "utf8"));
const DEFAULTS = read("values.yaml");
const CI = readdirSync(new URL("ci/", CHART));

test("the default values lack nothing but chains and the image", () => {
  const { error } = valuesSchema.safeParse(DEFAULTS);
  assert.deepEqual(
    error?.issues.map(({ path }) => path),
    [
      ["config", "chains"],
      ["image", "repository"],
    ],
  );
});

/** The end of the process writes known state, and closes the data folder. */
const WRITE_MS = STATE_SAVE_MS + FOLDER_CLOSE_MS;
const server = configSchema.shape.server.parse({});
/** The time that a pod with the default configuration needs to end. */
const END_MS = server.drainDelayMs + server.drainTimeoutMs + WRITE_MS;

test("the chart knows how long writing the data folder takes, and the defaults of draining", () => {
  const template = readFileSync(new URL("templates/_names.tpl", CHART), "utf8");
  assert.ok(template.includes(`(ternary ${WRITE_MS} 0 .Values.storage.enabled)`));
  assert.ok(template.includes(`drainDelayMs | default ${server.drainDelayMs} |`));
  assert.ok(template.includes(`drainTimeoutMs | default ${server.drainTimeoutMs} |`));
});

test("a pod gets more time to end than the configuration needs", () => {
  const { terminationGracePeriodSeconds, config } = valuesSchema.parse(
    mergeValues(DEFAULTS, read("ci/one-chain-values.yaml")),
  );
  const { drainDelayMs, drainTimeoutMs } = config.server;
  assert.ok(terminationGracePeriodSeconds * 1000 > drainDelayMs + drainTimeoutMs + WRITE_MS);
  assert.deepEqual([config.server.host, config.server.opsHost], ["0.0.0.0", "0.0.0.0"]);
});

/** Paths of all values, without those below a free mapping or a list. */
const pathsOf = (value: unknown, path = ""): readonly string[] =>
  isMapping(value) && Object.keys(value).length > 0
    ? Object.entries(value).flatMap(([key, item]) => pathsOf(item, path === "" ? key : `${path}.${key}`))
    : [path];

test("ci has one chain, two chains, Redis Cluster, and every value", () => {
  assert.deepEqual(CI, [
    "every-value-values.yaml",
    "one-chain-values.yaml",
    "redis-cluster-values.yaml",
    "two-chains-values.yaml",
  ]);
  const every = pathsOf(read("ci/every-value-values.yaml"));
  // Two of these exclude others, two depend on the replicas, and some mappings are free.
  const left =
    /^(?:secrets|redis\.url|replicaCount|storage\.existingClaim|podDisruptionBudget\.enabled|podSecurityContext|securityContext|ingress\.annotations|dashboard\.labels)/;
  const missing = pathsOf(DEFAULTS).filter(
    (path) => !left.test(path) && !every.some((set) => set === path || set.startsWith(`${path}.`)),
  );
  assert.deepEqual(missing, []);
});

for (const name of CI) {
  test(`${name}: fits the schema`, () => {
    valuesSchema.parse(mergeValues(DEFAULTS, read(`ci/${name}`)));
  });

  test(`${name}: helm lint passes, and every object has the required fields of its kind`, {
    skip: !hasHelm && "no helm",
  }, () => {
    runHelm("lint", "--strict", ...LINT_CLUSTER, "--values", `ci/${name}`, ".");
    const text = runHelm("template", "release", ...CLUSTER, "--values", `ci/${name}`, ".");
    const objects = parseAllDocuments(text)
      .map((document): unknown => document.toJS())
      .filter((content) => content !== null)
      .map((content) => kubernetesObject.parse(content));
    const names = objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`);
    assert.equal(new Set(names).size, names.length, "names differ");

    const [map] = objects.flatMap((object) =>
      object.kind === "ConfigMap" && "forebay.yaml" in object.data ? [object.data["forebay.yaml"]] : [],
    );
    assert.deepEqual(
      configSchema.parse(parse(map ?? "")),
      valuesSchema.parse(mergeValues(DEFAULTS, read(`ci/${name}`))).config,
    );
    const [pod] = objects.flatMap((object) => (object.kind === "Deployment" ? [object.spec.template.spec] : []));
    const server = configSchema.parse(parse(map ?? "")).server;
    assert.deepEqual(
      pod?.containers[0].ports.map(({ containerPort }) => containerPort),
      [server.port, server.opsPort],
    );
    // ci/two-chains has no Redis: a client must stay with the replica that made its filters. ci/every-value says so.
    const isSticky = name.startsWith("two-chains") || name.startsWith("every-value");
    const affinities = objects.flatMap((object) =>
      object.kind === "Service" && "sessionAffinity" in object.spec ? [object.spec.sessionAffinity] : [],
    );
    assert.deepEqual(affinities, [isSticky ? "ClientIP" : "None"]);
    assert.equal(text.includes("upstream-hash-by"), isSticky);
    if (name.startsWith("two-chains")) {
      for (const kind of ["ServiceMonitor", "PrometheusRule", "Ingress", "HorizontalPodAutoscaler"]) {
        assert.ok(
          objects.some((object) => object.kind === kind),
          kind,
        );
      }
    }
  });
}

const ADDRESS = `0x${"a".repeat(40)}`;
const PAYMENT = [
  `payTo=${ADDRESS}`,
  "network=eip155:8453",
  `asset.address=${ADDRESS}`,
  "asset.name=USDC",
  "asset.version=v2",
  "price.default=0.1",
  "facilitator.url=http://facilitator",
].map((option) => `config.access.payment.${option}`);

const refusals: readonly (readonly [what: string, values: readonly string[], reason: RegExp])[] = [
  ["an ingress without hosts", ["ingress.enabled=true"], /ingress.hosts: an ingress needs one or more hosts/],
  ["a route without a gateway", ["httpRoute.enabled=true"], /httpRoute.parentRefs: a route needs one or more gateways/],
  ["two forms of Redis", ["redis.existingSecret.name=other"], /redis: set url or existingSecret, not both/],
  ["payments on several replicas without Redis", ["redis.url=", ...PAYMENT], /several replicas need a Redis, which/],
  [
    "a grace period below the time of draining and writing",
    [`terminationGracePeriodSeconds=${END_MS / 1_000 - 1}`],
    new RegExp(`is less than the ${END_MS} ms`),
  ],
  [
    "a grace period below the time of draining alone",
    ["terminationGracePeriodSeconds=39", "storage.enabled=false"],
    /39 s is less than the 40000 ms/,
  ],
  ["a volume below cache.diskBytes", ["storage.size=1Gi"], /storage.size: 1Gi is less than the 2147483648 bytes/],
  ["an invalid digest", ["image.digest=latest"], /digest/],
];

for (const [name, values, reason] of refusals) {
  test(`helm refuses ${name}`, { skip: !hasHelm && "no helm" }, () => {
    const sets = values.flatMap((value) => ["--set", value]);
    assert.match(refusalOf("--values", "ci/one-chain-values.yaml", ...sets), reason);
  });
}

/** Renders every value of the chart, and returns its alerts. */
const renderRules = (...args: readonly string[]) =>
  parseAllDocuments(runHelm("template", "release", ...CLUSTER, "--values", "ci/every-value-values.yaml", ...args, "."))
    .map((document) => document.toJS())
    .filter((content) => content?.kind === "PrometheusRule")
    .flatMap(
      ({ spec }) => z.object({ groups: z.array(z.object({ rules: z.array(z.looseObject({})) })) }).parse(spec).groups,
    )
    .flatMap((group) => group.rules);

test("a threshold replaces the number at the end of an alert's expression", { skip: !hasHelm && "no helm" }, () => {
  const names = alertsWithThreshold();
  const thresholds = JSON.stringify(Object.fromEntries(names.map((name) => [name, 0.125])));
  const rules = renderRules("--set-json", `prometheusRule.thresholds=${thresholds}`);
  const changed = rules.filter(({ expr }) => /> 0\.125$/.test(String(expr)));
  assert.deepEqual(
    changed.map(({ alert }) => alert),
    names,
  );
  assert.ok(names.length > 10);
});

test("an override changes one alert, and can disable it", { skip: !hasHelm && "no helm" }, () => {
  const rules = renderRules();
  const slow = rules.find(({ alert }) => alert === "ForebaySlow");
  assert.deepEqual([slow?.for, slow?.labels], ["30m", { severity: "critical" }]);
  assert.ok(!rules.some(({ alert }) => alert === "ForebayAbsent"));
  assert.ok(rules.length > 15);
});

test("runbookBase is the address of every runbook_url", { skip: !hasHelm && "no helm" }, () => {
  for (const { alert, annotations } of renderRules()) {
    const { runbook_url: url } = z.object({ runbook_url: z.string() }).parse(annotations);
    assert.equal(url, `https://git.example/team/forebay/blob/v1/docs/runbook.md#${String(alert).toLowerCase()}`);
  }
});

test("helm refuses a wrong option by its path", { skip: !hasHelm && "no helm" }, () => {
  const refusal = refusalOf("--values", "ci/one-chain-values.yaml", "--set", "config.server.prot=1");
  // Older versions of Helm write the path with a dot.
  assert.match(refusal, /config[./]server.*prot/s);
});

test("values.schema.json is draft 7, which every Helm 3 reads", () => {
  const { $schema } = z.looseObject({ $schema: z.string() }).parse(read("values.schema.json"));
  assert.match($schema, /draft-07/);
});

test("the schema of the chart admits variables wherever the configuration does, and still refuses wrong values", () => {
  const schema = z.fromJSONSchema(read("values.schema.json") as Parameters<typeof z.fromJSONSchema>[0]);
  const faultsOf = (config: object): readonly string[] =>
    schema
      .safeParse({ ...Object(DEFAULTS), image: { ...Object(DEFAULTS).image, repository: "a" }, config })
      .error?.issues.map(({ path }) => path.join(".")) ?? [];
  const chains = [
    {
      name: "${NAME}",
      chainId: "${ID}",
      nodes: [{ url: "${URL}", priority: "${PRIORITY:-1}" }],
      state: { follow: "${FOLLOW}" },
      quirks: { anvilDepositNonce: "${ANVIL}" },
    },
  ];
  const keys = [{ name: "wallet", sha256: "${DIGEST}", expires: "${EXPIRES}", limit: { calls: "${CALLS}" } }];
  const asset = { address: "${ASSET}", name: "USDC", version: "2", decimals: "${DECIMALS}" };
  const payment = {
    payTo: "${PAY_TO}",
    network: "${NETWORK}",
    asset,
    facilitator: { url: "${FACILITATOR}" },
    price: { default: "${PRICE}" },
  };
  const server = { opsToken: "${file:/etc/forebay-secrets/ops/token}", healthPath: "${HEALTH_PATH}" };
  assert.deepEqual(faultsOf({ chains, server, access: { keys, payment }, log: { level: "${LEVEL}" } }), []);
  assert.deepEqual(faultsOf({ chains, server: { opsToken: "short" } }), ["config.server.opsToken"]);
  assert.deepEqual(faultsOf({ chains, access: { keys: [{ name: "wallet", sha256: "ab" }] } }), [
    "config.access.keys.0.sha256",
  ]);
});

test("the pod of helm test reaches the ops port under the network policy", { skip: !hasHelm && "no helm" }, () => {
  const values = ["--values", "ci/one-chain-values.yaml", "--set", "networkPolicy.enabled=true"];
  const objects = parseAllDocuments(runHelm("template", "release", ...CLUSTER, ...values, ".")).map(
    (document) => document.toJS() ?? {},
  );
  const policy = objects.find(({ kind }) => kind === "NetworkPolicy");
  const pod = objects.find(({ kind }) => kind === "Pod");
  const admitted = policy.spec.ingress
    .filter(({ ports }: { ports: readonly { port: string }[] }) => ports[0]?.port === "ops")
    .flatMap(({ from }: { from: readonly object[] }) => from);
  assert.ok(
    admitted.some((peer: object) => isDeepStrictEqual(peer, { podSelector: { matchLabels: pod.metadata.labels } })),
  );
});

test("existing Secrets are mounted as folders that cannot be written", { skip: !hasHelm && "no helm" }, () => {
  const objects = parseAllDocuments(
    runHelm("template", "release", ...CLUSTER, "--values", "ci/every-value-values.yaml", "."),
  ).map((document) => document.toJS() ?? {});
  const { containers, volumes } = objects.find(({ kind }) => kind === "Deployment").spec.template.spec;
  const mounts = containers[0].volumeMounts.filter(({ name }: { name: string }) => name.startsWith("secret-"));
  assert.deepEqual(mounts, [
    { name: "secret-0", mountPath: "/etc/forebay-secrets/provider-files", readOnly: true },
    { name: "secret-1", mountPath: "/etc/forebay-secrets/payment.files", readOnly: true },
  ]);
  assert.deepEqual(
    volumes.filter(({ name }: { name: string }) => name.startsWith("secret-")),
    [
      { name: "secret-0", secret: { secretName: "provider-files" } },
      { name: "secret-1", secret: { secretName: "payment.files" } },
    ],
  );
});
