import { z } from "zod";

const text = z.string().min(1);
const texts = z.record(text, z.string());
const selector = z.strictObject({ matchLabels: texts });
const metadata = z.strictObject({
  name: text.max(63).regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/),
  labels: texts,
  annotations: texts.optional(),
});

const object = <A extends string, K extends string, S extends z.core.$ZodLooseShape>(apiVersion: A, kind: K, rest: S) =>
  z.strictObject({ apiVersion: z.literal(apiVersion), kind: z.literal(kind), metadata, ...rest });

const port = z.number().int().min(1).max(65_535);
const probe = z.looseObject({ httpGet: z.strictObject({ path: text, port: text }) });
const hardened = z.looseObject({
  allowPrivilegeEscalation: z.literal(false),
  readOnlyRootFilesystem: z.literal(true),
  capabilities: z.strictObject({ drop: z.tuple([z.literal("ALL")]) }),
});
const unprivileged = z.looseObject({
  runAsNonRoot: z.literal(true),
  seccompProfile: z.strictObject({ type: z.literal("RuntimeDefault") }),
});

const container = z.looseObject({
  name: text,
  image: text.regex(/^[^\s@]+(?::[^:\s/]+|@sha256:[0-9a-f]{64})$/),
  args: z.tuple([z.literal("--config"), text], text),
  ports: z.array(z.strictObject({ name: text, containerPort: port })),
  startupProbe: probe,
  livenessProbe: probe,
  readinessProbe: probe,
  resources: z.record(text, texts),
  securityContext: hardened,
  volumeMounts: z.array(
    // No subPath, because Kubernetes does not update a file that is mounted with it.
    z.strictObject({ name: text, mountPath: text, readOnly: z.boolean().optional() }),
  ),
});

const pod = z.looseObject({
  automountServiceAccountToken: z.literal(false),
  enableServiceLinks: z.literal(false),
  terminationGracePeriodSeconds: z.number(),
  securityContext: unprivileged,
  containers: z.tuple([container], z.looseObject({ name: text, image: text })),
  volumes: z.array(z.looseObject({ name: text })),
  topologySpreadConstraints: z.array(
    z.looseObject({ maxSkew: z.number(), topologyKey: text, whenUnsatisfiable: text, labelSelector: selector }),
  ),
});

const servicePort = z.strictObject({
  name: text,
  port,
  targetPort: text,
  nodePort: port.optional(),
  protocol: z.literal("TCP"),
});

/** Required fields of each kind in this chart. Source: API references of Kubernetes and of the Prometheus operator. */
export const kubernetesObject = z.discriminatedUnion("kind", [
  object("apps/v1", "Deployment", {
    spec: z.strictObject({
      replicas: z.number().optional(),
      minReadySeconds: z.number(),
      revisionHistoryLimit: z.number(),
      strategy: z.looseObject({ type: z.literal("RollingUpdate") }),
      selector,
      template: z.strictObject({ metadata: metadata.omit({ name: true }), spec: pod }),
    }),
  }),
  object("v1", "Service", { spec: z.looseObject({ selector: texts, ports: z.tuple([servicePort]) }) }),
  object("v1", "ConfigMap", { data: z.record(text, text) }),
  object("v1", "Secret", { type: z.literal("Opaque"), stringData: texts }),
  object("v1", "ServiceAccount", { automountServiceAccountToken: z.boolean() }),
  object("v1", "Pod", {
    spec: z.looseObject({
      restartPolicy: z.literal("Never"),
      securityContext: unprivileged,
      containers: z.array(z.looseObject({ name: text, image: text, securityContext: hardened })).min(1),
    }),
  }),
  object("policy/v1", "PodDisruptionBudget", {
    spec: z.strictObject({ maxUnavailable: z.union([z.number(), text]), selector }),
  }),
  object("autoscaling/v2", "HorizontalPodAutoscaler", {
    spec: z.strictObject({
      scaleTargetRef: z.strictObject({ apiVersion: text, kind: z.literal("Deployment"), name: text }),
      minReplicas: z.number(),
      maxReplicas: z.number(),
      metrics: z.array(z.looseObject({ type: text })).min(1),
      behavior: z.looseObject({}).optional(),
    }),
  }),
  object("networking.k8s.io/v1", "Ingress", {
    spec: z.looseObject({
      rules: z
        .array(
          z.strictObject({
            host: text,
            http: z.strictObject({ paths: z.array(z.looseObject({ path: text, pathType: text })) }),
          }),
        )
        .min(1),
    }),
  }),
  object("networking.k8s.io/v1", "NetworkPolicy", {
    spec: z.strictObject({
      podSelector: selector,
      policyTypes: z.tuple([z.literal("Ingress")], z.literal("Egress")),
      egress: z.array(z.looseObject({})).min(1).optional(),
      ingress: z.array(
        z.strictObject({
          ports: z.tuple([z.strictObject({ port: text, protocol: z.literal("TCP") })]),
          from: z.array(z.looseObject({})).min(1).optional(),
        }),
      ),
    }),
  }),
  object("gateway.networking.k8s.io/v1", "HTTPRoute", {
    spec: z.strictObject({
      parentRefs: z.array(z.looseObject({ name: text })).min(1),
      hostnames: z.array(text).optional(),
      rules: z.tuple([
        z.strictObject({
          matches: z.array(z.looseObject({})).min(1),
          backendRefs: z.tuple([z.strictObject({ name: text, port })]),
        }),
      ]),
    }),
  }),
  object("monitoring.coreos.com/v1", "ServiceMonitor", {
    spec: z.strictObject({ selector, endpoints: z.array(z.looseObject({ port: text, path: text })).min(1) }),
  }),
  object("monitoring.coreos.com/v1", "PrometheusRule", {
    spec: z.strictObject({
      groups: z.array(z.looseObject({ name: text, rules: z.array(z.looseObject({ alert: text, expr: text })).min(1) })),
    }),
  }),
]);
