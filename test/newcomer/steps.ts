/** A command line of a document, and how a newcomer runs it. */
export interface Step {
  readonly line: string;
  /** The command runs until a line of its output matches. Then it gets Ctrl-C, and must end. */
  readonly until?: RegExp;
  /** The command that is run instead, with the reason. Without a command, nothing is run. */
  readonly instead?: { readonly command?: string; readonly reason: string };
  /** Runs only if the program works here. */
  readonly needs?: "docker";
  /** Sends a call to the URL that the output contains, as a client of the service. */
  readonly asks?: true;
  /** Runs each curl line that the command prints. */
  readonly tries?: true;
}

const LISTENS = /"listening":"http/;
const CLUSTER = { reason: "it needs a registry or a cluster" };

/** Configurations of documents, which `check` reads in front of stand-ins of their nodes. */
export const RECIPES: readonly { readonly page: string; readonly heading: string }[] = [
  { page: "docs/recipes.md", heading: "## Own node first, and a paid provider behind it" },
  { page: "docs/recipes.md", heading: "## Fast chains" },
  { page: "docs/from-erpc.md", heading: "# Coming from eRPC" },
];

/** The command that checks a recipe. */
export const CHECK_RECIPE: Step = { line: "npm start -- check --config recipe.yaml" };

/** Each command line of README and of docs/operate.md. A test compares them with the documents. */
export const STEPS: readonly Step[] = [
  { line: "npm ci && npm run demo", until: /Ctrl-C ends everything/, tries: true },
  {
    line: "npm ci && npm test",
    instead: { command: "npm run test:unit", reason: "the other tests take minutes, and CI runs them" },
  },
  {
    line: "npm ci && npm start -- --upstream https://node.example/KEY --upstream-ws wss://node.example/KEY --redis redis://localhost --data-dir ~/.forebay --port 8545",
    until: LISTENS,
    asks: true,
  },
  {
    line: "npm start -- --provider alchemy:KEY --provider publicnode --chain op,base",
    instead: { reason: "it needs the key of a provider" },
  },
  { line: "npm --silent start -- init --provider alchemy:KEY --chain op,base > first.yaml" },
  { line: "npm start -- check --config forebay.yaml" },
  { line: "npm start -- --config forebay.yaml", until: LISTENS, asks: true },
  { line: "npm ci", instead: { reason: "it ran before" } },
  { line: "npm start -- --upstream https://node.example/KEY", until: LISTENS, asks: true },
  { line: "npm ci && npm run pack" },
  { line: "npm install --global ./dist/forebay-0.1.0.tgz" },
  { line: "forebay --upstream https://node.example/KEY", until: LISTENS, asks: true },
  { line: "docker build --tag registry.example/forebay:0.1.0 .", needs: "docker" },
  { line: "docker push registry.example/forebay:0.1.0", instead: CLUSTER },
  {
    line: "helm install forebay ./helm --values values.yaml --set image.repository=registry.example/forebay --set image.tag=0.1.0",
    instead: CLUSTER,
  },
];
