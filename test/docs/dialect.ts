/** A phrase that the project's texts avoid, and the usual way to say it. */
export interface Phrase {
  /** Matches one sentence, with its lines joined and inline code removed. Not global. */
  readonly pattern: RegExp;
  readonly instead: string;
}

/** Phrases that were typical of the project's first texts. They apply to documents and to comments. */
export const OLD_PHRASES: readonly Phrase[] = [
  { pattern: /\bput by (?:number|hash)\b/i, instead: "requests by number" },
  { pattern: /\bnaming no block\b/i, instead: "requests without a block" },
  { pattern: /\bby its own words\b/i, instead: "according to the response" },
  { pattern: /\bwhere it tells none\b/i, instead: "if it has none" },
  { pattern: /\bhas not yet heard of\b/i, instead: "does not know" },
  { pattern: /\b(?:is|are) not believed\b/i, instead: "is ignored" },
  { pattern: /\bas many \w+ as (?:he|they) likes?\b/i, instead: "any number of" },
  { pattern: /\bcounts? as one caller\b/i, instead: "counts as one client" },
  { pattern: /\bruns on what is known\b/i, instead: "executes on cached state" },
  { pattern: /\bwhat it lacked\b/i, instead: "what is missing" },
  { pattern: /\bhas told its head\b/i, instead: "has reported a head" },
  { pattern: /\bheld by what stands\b/i, instead: "verified by" },
  { pattern: /\bwhat null is\b/i, instead: "whether a response is null" },
  { pattern: /\bis said in one place\b/i, instead: "is defined once" },
];

/** Words and clauses without a noun as subject. They apply to documents and to comments. */
export const LOCAL_WORDS: readonly Phrase[] = [
  { pattern: /\bas (?:it|they) c[ao]mes?\b/i, instead: "unchanged" },
  { pattern: /\bat most\s*(?=[.;:)]|$)/i, instead: "up to N, or: limited to N" },
  { pattern: /\bso long\b(?! as\b)/i, instead: "for that time" },
  { pattern: /\banew\b/i, instead: "again" },
  { pattern: /\b(?:he|him|his)\b/i, instead: "the client, the program, it" },
  { pattern: /\bmeanwhile\b/i, instead: "in the meantime, during the ..." },
  { pattern: /\bso (?:many|much|often)\b(?! (?:as|that)\b)/i, instead: "this number of, at this interval" },
  { pattern: /\bsays? (?:nothing )?of\b/i, instead: "reports, contains, returns" },
  { pattern: /\bwhere (?:it|they|there|that|the|no|one|none)\b/i, instead: "if (a condition), in which (a place)" },
  {
    pattern: /^(?:What|Who|Whoever)\b(?!\s+(?:\S+\s*){0,3}$)[^?]*$/,
    instead: "name the thing: Requests that ..., The block that ...",
  },
];

/** Verbs that have a usual name in the field. They apply to documents and to comments. */
export const LOCAL_VERBS: readonly Phrase[] = [
  { pattern: /\b(?:tell|tells|told|telling)\b/i, instead: "report, return, show" },
  { pattern: /\bheld (?:against|by|beside)\b/i, instead: "compared with, verified by" },
  { pattern: /\blet(?:s|ting)? go\b/i, instead: "release, evict" },
  { pattern: /\bstands?\b(?! for\b|-)/i, instead: "is, is based on" },
  { pattern: /\bkept\b/i, instead: "cached, stored, buffered" },
  { pattern: /\bput (?:to|again)\b/i, instead: "sent, retried" },
  { pattern: /\b(?:unproven|proven)\b/i, instead: "unverified, verified" },
];
