import { z } from "zod";
import { configSchema } from "../src/config/schema.ts";

const text = z.string();
const texts = z.record(text, text);
const positive = z.number().int().positive();
/** Values that Kubernetes defines and checks. */
const kubernetes = z.record(text, z.unknown());

/** Values of the chart. Helm adds `global` to those of every chart. */
export const valuesSchema = z.strictObject({
  global: kubernetes.optional(),
  config: configSchema,
  secrets: texts.describe("Environment variables, stored in a Secret of this chart"),
  existingSecrets: z.array(text).describe("Secrets whose keys become environment variables"),
  redis: z.strictObject({ url: text, existingSecret: z.strictObject({ name: text, key: text }) }),
  image: z.strictObject({
    repository: text.min(1),
    tag: text,
    pullPolicy: z.enum(["Always", "IfNotPresent", "Never"]),
  }),
  imagePullSecrets: z.array(z.strictObject({ name: text })),
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
    annotations: texts,
  }),
  ingress: z.strictObject({
    enabled: z.boolean(),
    className: text,
    annotations: texts,
    hosts: z.array(text),
    tls: z.array(z.strictObject({ hosts: z.array(text), secretName: text })),
  }),
  serviceAccount: z.strictObject({ create: z.boolean(), name: text, annotations: texts }),
  serviceMonitor: z.strictObject({ enabled: z.boolean(), interval: text, labels: texts }),
  prometheusRule: z.strictObject({ enabled: z.boolean(), labels: texts }),
  dashboard: z.strictObject({ enabled: z.boolean(), labels: texts }),
  podAnnotations: texts,
  podLabels: texts,
  nodeSelector: texts,
  tolerations: z.array(kubernetes),
  affinity: kubernetes,
  topologySpreadConstraints: z.array(kubernetes),
});
