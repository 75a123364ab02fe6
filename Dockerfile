# syntax=docker/dockerfile:1
FROM node:26-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json pack.ts README.md CHANGELOG.md LICENSE ./
COPY src ./src
RUN npm run pack
# Runtime packages: the versions of the lock file, without development tools and without the repository's own runtime.
# Tracing and payments are optional packages, and the image has them.
RUN npm ci --ignore-scripts --omit=dev && rm -rf node_modules/node-linux-*
# secp256k1 has no native build for ARM on Linux. Without one, senders are recovered by slower JavaScript.
RUN if [ "$(node --print process.arch)" != x64 ]; then \
      apt-get update && apt-get install --yes --no-install-recommends python3 make g++ && npm rebuild secp256k1; \
    fi

FROM node:26-slim
WORKDIR /app
# glibc returns the memory of a freed large buffer at once (docs/performance.md, "Memory of the C library").
ENV MALLOC_ARENA_MAX=1 \
    MALLOC_MMAP_THRESHOLD_=131072 \
    MALLOC_TRIM_THRESHOLD_=131072
ENV NODE_ENV=production \
    NODE_COMPILE_CACHE=/app/.compile-cache \
    FOREBAY_HOST=0.0.0.0 \
    FOREBAY_DATA_DIR=/var/lib/forebay/data \
    FOREBAY_OPS_HOST=0.0.0.0
COPY --from=build /build/dist/package.json ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist/lib ./lib
# Loads every module once, so that a container starts from compiled code. Run it as the final user: the cache depends on the uid.
RUN install -d -o node .compile-cache && install -d -o node -m 0700 /var/lib/forebay
# A number, so that Kubernetes can see that it is not root.
USER 1000
RUN node lib/cli/bin.js --version \
 && node --input-type=module -e 'for (const name of ["http-proxy", "ioredis", "rate-limiter-flexible", "ws", "yaml"]) { await import(name); }' \
 && node --input-type=module -e 'for (const task of ["app/evmRuns", "verification/verificationTask", "storage/storageTask"]) { await import(`/app/lib/${task}.js`); }'
EXPOSE 8545 9545
# It finds the ops port in the arguments and the configuration of process 1.
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s CMD ["node", "/app/lib/cli/bin.js", "health"]
# Exec form without a shell: forebay gets SIGTERM, drains and exits with 0.
ENTRYPOINT ["node", "/app/lib/cli/bin.js"]
