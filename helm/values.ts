import { z } from "zod";
import { alertsWithThreshold } from "../grafana/thresholds.ts";
import { configSchema } from "../src/config/schema.ts";

const text = z.string();
const texts = z.record(text, text);
const positive = z.number().int().positive();
/** Values that Kubernetes defines and checks. */
const kubernetes = z.record(text, z.unknown());

const ruleOverride = z.strictObject({
  disabled: z.boolean().optional(),
  expr: text.optional(),
  for: text.optional(),
  labels: texts.optional(),
  annotations: texts.optional(),
});
const probe = z.strictObject({
  initialDelaySeconds: z.number().int().nonnegative().optional(),
  periodSeconds: positive,
  timeoutSeconds: positive,
  failureThreshold: positive,
});

/** Values of the chart. Helm adds `global` to those of every chart. */
export const valuesSchema = z.strictObject({
  global: kubernetes.optional(),
  config: configSchema,
  secrets: texts.describe("Environment variables, stored in a Secret of this chart"),
  existingSecrets: z.array(text).describe("Secrets whose keys become environment variables"),
  existingSecretsChecksum: text.describe("A new text restarts the pods"),
  redis: z.strictObject({ url: text, existingSecret: z.strictObject({ name: text, key: text }) }),
  image: z.strictObject({
    registry: text,
    repository: text.min(1),
    tag: text,
    digest: text.regex(/^(?:|sha256:[0-9a-f]{64})$/),
    pullPolicy: z.enum(["Always", "IfNotPresent", "Never"]),
  }),
  imagePullSecrets: z.array(z.strictObject({ name: text })),
  storage: z
    .strictObject({ enabled: z.boolean(), size: text.min(1), existingClaim: text })
    .describe("The data folder: an emptyDir of this size, or a volume of one replica"),
  nameOverride: text,
  fullnameOverride: text,
  commonLabels: texts,
  commonAnnotations: texts,
  deploymentAnnotations: texts,
  replicaCount: z.number().int().nonnegative(),
  autoscaling: z.strictObject({
    enabled: z.boolean(),
    minReplicas: positive,
    maxReplicas: positive,
    targetCPUUtilizationPercentage: positive,
  }),
  podDisruptionBudget: z.strictObject({ enabled: z.boolean(), maxUnavailable: z.union([positive, text]) }),
  restartOnConfigChange: z.boolean(),
  terminationGracePeriodSeconds: positive,
  resources: kubernetes,
  service: z.strictObject({
    type: z.enum(["ClusterIP", "NodePort", "LoadBalancer"]),
    port: positive.max(65_535),
    sessionAffinity: z.enum(["", "ClientIP", "None"]),
    ipFamilyPolicy: z.enum(["", "SingleStack", "PreferDualStack", "RequireDualStack"]),
    ipFamilies: z.array(z.enum(["IPv4", "IPv6"])),
    annotations: texts,
  }),
  ingress: z.strictObject({
    enabled: z.boolean(),
    className: text,
    annotations: texts,
    hosts: z.array(text),
    tls: z.array(z.strictObject({ hosts: z.array(text), secretName: text })),
  }),
  httpRoute: z.strictObject({
    enabled: z.boolean(),
    parentRefs: z.array(kubernetes),
    hostnames: z.array(text),
    annotations: texts,
  }),
  networkPolicy: z.strictObject({ enabled: z.boolean(), from: z.array(kubernetes), opsFrom: z.array(kubernetes) }),
  serviceAccount: z.strictObject({ create: z.boolean(), name: text, annotations: texts }),
  serviceMonitor: z.strictObject({ enabled: z.boolean(), interval: text, labels: texts }),
  prometheusRule: z.strictObject({
    enabled: z.boolean(),
    labels: texts,
    runbookBase: text.describe("URL of the documents, before docs/runbook.md#... in the annotation runbook_url"),
    overrides: z.record(text, ruleOverride).describe("Changes of single alerts, by name"),
    thresholds: z
      .strictObject(Object.fromEntries(alertsWithThreshold().map((alert) => [alert, z.number().positive().optional()])))
      .describe("Thresholds of alerts, by name"),
  }),
  dashboard: z.strictObject({ enabled: z.boolean(), labels: texts }),
  customCa: z.strictObject({ configMap: text, key: text }),
  extraEnv: z.array(kubernetes),
  extraEnvFrom: z.array(kubernetes),
  extraVolumes: z.array(kubernetes),
  extraVolumeMounts: z.array(kubernetes),
  podSecurityContext: kubernetes,
  securityContext: kubernetes,
  probes: z.strictObject({ startup: probe, liveness: probe, readiness: probe }),
  priorityClassName: text,
  podAnnotations: texts,
  podLabels: texts,
  nodeSelector: texts,
  tolerations: z.array(kubernetes),
  affinity: kubernetes,
  topologySpreadConstraints: z.array(kubernetes),
});
