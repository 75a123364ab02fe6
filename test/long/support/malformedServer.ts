import { MALFORMED_LIMITS } from "../../support/builders/malformedRequests.ts";
import { createTestEndpoint, startHttpServer } from "../../support/servers/httpServer.ts";

const { maxBodyBytes, maxBatch } = MALFORMED_LIMITS;
const server = await startHttpServer(createTestEndpoint({ methods: {}, maxBatch }), { maxBodyBytes });
process.send?.(server.port);
process.on("disconnect", () => process.exit());
