import { z } from "zod";
import { alertsWithThreshold } from "../grafana/thresholds.ts";
import { configSchema } from "../src/config/schema.ts";

const text = z.string();
const texts = z.record(text, text);
const positive = z.number().int().positive();
const natural = z.number().int().nonnegative();
const portNumber = positive.max(65_535);
/** Values that Kubernetes defines and checks. */
const kubernetes = z.record(text, z.unknown());
const kubernetesList = z.array(kubernetes);

const annotations = texts.describe("Annotations of this object");
const enabled = z.boolean().describe("Whether the chart creates this object");

const ruleOverride = z.strictObject({
  disabled: z.boolean().optional(),
  expr: text.optional(),
  for: text.optional(),
  labels: texts.optional(),
  annotations: texts.optional(),
});
const probe = z.strictObject({
  initialDelaySeconds: natural.optional(),
  periodSeconds: positive,
  timeoutSeconds: positive,
  failureThreshold: positive,
});

/** What a release has once: configuration, secrets, image, labels. */
const releaseValues = {
  global: kubernetes.optional().describe("Helm adds it to the values of every chart; not used here"),
  config: configSchema.describe("The configuration of forebay: docs/configuration.md"),
  secrets: texts.describe("Environment variables, stored in a Secret of this chart"),
  existingSecrets: z.array(text).describe("Secrets whose keys become environment variables"),
  existingSecretFiles: z
    .array(text)
    .describe("Secrets mounted as files: `${file:/etc/forebay-secrets/SECRET/KEY}` in the configuration"),
  existingSecretsChecksum: text.describe("A new text restarts the pods"),
  redis: z.strictObject({
    url: text.describe("The Redis that replicas share, stored in a Secret of this chart; none by default"),
    existingSecret: z.strictObject({
      name: text.describe("Secret with the URL of Redis, in place of `redis.url`"),
      key: text.describe("Key of that Secret"),
    }),
  }),
  image: z.strictObject({
    registry: text.describe("Registry, put before the repository"),
    repository: text.min(1).describe("Name of the image; required"),
    tag: text.describe("Tag; by default the version of the chart"),
    digest: text.regex(/^(?:|sha256:[0-9a-f]{64})$/).describe("Digest, in place of the tag: `sha256:...`"),
    pullPolicy: z.enum(["Always", "IfNotPresent", "Never"]).describe("When the image is pulled"),
  }),
  imagePullSecrets: z.array(z.strictObject({ name: text })).describe("Secrets of the registry"),
  nameOverride: text.describe("Name of the chart in labels"),
  fullnameOverride: text.describe("Name of all objects"),
  commonLabels: texts.describe("Labels of all objects"),
  commonAnnotations: texts.describe("Annotations of all objects"),
  serviceAccount: z.strictObject({
    create: z.boolean().describe("Whether the chart creates a service account"),
    name: text.describe("Name of the account; by default that of the release, or `default` if none is created"),
    annotations,
  }),
};

/** The Deployment, and what decides how many pods it has and how they are replaced. */
const deploymentValues = {
  deploymentAnnotations: texts.describe("Annotations of the Deployment"),
  replicaCount: natural.describe("Number of pods without autoscaling"),
  strategy: kubernetes.describe(
    "How pods are replaced; by default one at a time without a gap, or `Recreate` with `storage.existingClaim`",
  ),
  minReadySeconds: natural.describe("Seconds that a new pod is ready before it counts as available"),
  revisionHistoryLimit: natural.describe("Old ReplicaSets that are kept for a rollback"),
  autoscaling: z.strictObject({
    enabled,
    minReplicas: positive.describe("Least number of pods"),
    maxReplicas: positive.describe("Greatest number of pods"),
    targetCPUUtilizationPercentage: positive.describe("Mean CPU in percent of the request"),
    metrics: kubernetesList.describe("Further metrics beside the CPU"),
    behavior: kubernetes.describe("Rates of scaling up and down"),
  }),
  podDisruptionBudget: z.strictObject({
    enabled,
    maxUnavailable: z.union([positive, text]).describe("Pods that may be evicted at a time"),
  }),
  restartOnConfigChange: z.boolean().describe("Whether a changed configuration restarts the pods; else they reload it"),
  terminationGracePeriodSeconds: positive.describe("Above the time of draining and of writing the data folder"),
};

/** Everything in a pod. */
const podValues = {
  storage: z.strictObject({
    enabled: z.boolean().describe("Whether pods have a data folder: `server.dataDir`"),
    size: text.min(1).describe("Size of the folder, an emptyDir; above `config.cache.diskBytes`"),
    existingClaim: text.describe("Volume in place of the emptyDir, for one replica"),
  }),
  resources: kubernetes.describe("CPU and memory"),
  initContainers: kubernetesList.describe("Containers that run before forebay"),
  extraContainers: kubernetesList.describe("Containers beside forebay"),
  extraArgs: z.array(text).describe("Further arguments of the command, such as `--log-level=warn`"),
  extraEnv: kubernetesList.describe("Further environment variables"),
  extraEnvFrom: kubernetesList.describe("Further sources of environment variables"),
  extraVolumes: kubernetesList.describe("Further volumes of the pod"),
  extraVolumeMounts: kubernetesList.describe("Further volume mounts of the container of forebay"),
  lifecycle: kubernetes.describe("Hooks after the start and before the end of the container of forebay"),
  customCa: z.strictObject({
    configMap: text.describe("ConfigMap with certificate authorities for nodes and Redis; none by default"),
    key: text.describe("Key of the PEM file in that ConfigMap"),
  }),
  podSecurityContext: kubernetes.describe("Security context of the pod"),
  securityContext: kubernetes.describe("Security context of the container of forebay"),
  probes: z.strictObject({
    startup: probe.describe("Times of the startup probe, which reads `/healthz`"),
    liveness: probe.describe("Times of the liveness probe, which reads `/healthz`"),
    readiness: probe.describe("Times of the readiness probe, which reads `/readyz`"),
  }),
  priorityClassName: text.describe("Priority class of the pod"),
  podAnnotations: texts.describe("Annotations of the pod"),
  podLabels: texts.describe("Labels of the pod"),
  hostAliases: kubernetesList.describe("Further entries of `/etc/hosts`"),
  dnsConfig: kubernetes.describe("Name servers and options of DNS"),
  nodeSelector: texts.describe("Labels of the machines that the pod may run on"),
  tolerations: kubernetesList.describe("Taints that the pod tolerates"),
  affinity: kubernetes.describe("Affinity of the pod"),
  topologySpreadConstraints: kubernetesList.describe("By default pods are spread over hosts and zones if possible"),
};

/** How clients reach the pods, and the pods others. */
const networkValues = {
  service: z.strictObject({
    type: z.enum(["ClusterIP", "NodePort", "LoadBalancer"]).describe("Type of the Service of clients"),
    port: portNumber.describe("Port of the Service"),
    nodePort: z
      .union([z.literal(0), portNumber])
      .describe("Port on each machine, for `NodePort` and `LoadBalancer`; 0: Kubernetes chooses"),
    loadBalancerClass: text.describe("Which load balancer is used, if there are several"),
    loadBalancerSourceRanges: z.array(text).describe("Networks that may use the load balancer; empty: all"),
    externalTrafficPolicy: z
      .enum(["", "Cluster", "Local"])
      .describe("`Local` preserves the addresses of clients; by default `Cluster`"),
    sessionAffinity: z
      .enum(["", "ClientIP", "None"])
      .describe("By default `ClientIP` without Redis, where each replica stores its own polled filters, else `None`"),
    ipFamilyPolicy: z
      .enum(["", "SingleStack", "PreferDualStack", "RequireDualStack"])
      .describe("IPv4, IPv6 or both; by default that of the cluster"),
    ipFamilies: z.array(z.enum(["IPv4", "IPv6"])).describe("Order of the families"),
    annotations,
  }),
  ingress: z.strictObject({
    enabled,
    className: text.describe("Class of the ingress"),
    annotations,
    hosts: z.array(text).describe("Names of hosts"),
    paths: z
      .array(
        z.strictObject({
          path: text.startsWith("/"),
          pathType: z.enum(["Exact", "Prefix", "ImplementationSpecific"]),
        }),
      )
      .min(1)
      .describe("Paths of each host, for example of some chains only"),
    tls: z.array(z.strictObject({ hosts: z.array(text), secretName: text })).describe("Certificates"),
  }),
  httpRoute: z.strictObject({
    enabled,
    parentRefs: kubernetesList.describe("Gateways"),
    hostnames: z.array(text).describe("Names of hosts"),
    annotations,
  }),
  networkPolicy: z.strictObject({
    enabled,
    from: kubernetesList.describe("Peers that reach the traffic port; empty: all"),
    opsFrom: kubernetesList.describe("Peers that reach the ops port, beside the pod of `helm test`; empty: none"),
    egress: kubernetesList.describe(
      "Rules of outgoing connections, also to DNS, nodes, feeds and Redis; empty: all are allowed",
    ),
  }),
};

/** Objects of the Prometheus operator and of Grafana. */
const monitoringValues = {
  serviceMonitor: z.strictObject({
    enabled,
    interval: text.describe("Time between two scrapes"),
    scrapeTimeout: text.describe("Deadline of a scrape; by default that of Prometheus"),
    labels: texts.describe("Labels by which Prometheus selects this object"),
    relabelings: kubernetesList.describe("Changes of the labels of targets"),
    metricRelabelings: kubernetesList.describe("Changes of the labels of metrics"),
  }),
  prometheusRule: z.strictObject({
    enabled,
    labels: texts.describe("Labels by which Prometheus selects this object"),
    runbookBase: text.describe(
      "URL of the documents, put before the path of the runbook in the annotation `runbook_url`",
    ),
    overrides: z.record(text, ruleOverride).describe("Changes of single alerts, by name"),
    thresholds: z
      .strictObject(Object.fromEntries(alertsWithThreshold().map((alert) => [alert, z.number().positive().optional()])))
      .describe("Thresholds of alerts, by name"),
  }),
  dashboard: z.strictObject({ enabled, labels: texts.describe("Labels by which Grafana finds the dashboard") }),
};

/** Values of the chart. Helm adds `global` to those of every chart. */
export const valuesSchema = z.strictObject({
  ...releaseValues,
  ...deploymentValues,
  ...podValues,
  ...networkValues,
  ...monitoringValues,
});
