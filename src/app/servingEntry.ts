import { enableCompileCache } from "node:module";

// A static import would be compiled before the cache is in use.
enableCompileCache();
await import("./servingProcess.ts");
