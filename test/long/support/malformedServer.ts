import { createTestEndpoint, startHttpServer } from "../../support/httpServer.ts";
import { MALFORMED_LIMITS } from "../../support/malformedRequests.ts";

const { maxBodyBytes, maxBatch } = MALFORMED_LIMITS;
const server = await startHttpServer(createTestEndpoint({ methods: {}, maxBatch }), { maxBodyBytes });
process.send?.(server.port);
process.on("disconnect", () => process.exit());
