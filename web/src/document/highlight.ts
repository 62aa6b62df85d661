/** A stretch of code and what it is; plain text has no kind. */
export interface Piece {
  text: string;
  kind?: "comment" | "string" | "number" | "keyword" | "name";
}

interface Grammar {
  comment: string[];
  string: string[];
  keywords: string;
  ignoreCase?: boolean;
  /** A further kind of word that stands out: a key, a tag, a variable. */
  name?: string;
}

const slashes = ["\\/\\/[^\\n]*", "\\/\\*[\\s\\S]*?(?:\\*\\/|$)"];
const hash = ["#[^\\n]*"];
const quotes = ["\"(?:\\\\.|[^\"\\\\\\n])*\"?", "'(?:\\\\.|[^'\\\\\\n])*'?"];
const backtick = "`(?:\\\\[\\s\\S]|[^`\\\\])*`?";

const c = "abstract as async await base bool break byte case catch char class const continue decimal default delegate do double else enum event export extends extern false final finally fixed float fn for foreach from func function get go goto if implements implicit import in int interface internal is let lock long match mod mut namespace new nil null object of operator out override package params private protected pub public range readonly record ref required return sbyte sealed select self set short sizeof static string struct super switch this throw throws true try type typeof uint ulong undefined unsafe use using var virtual void volatile when where while with yield chan defer map init error";
const grammars: Record<string, Grammar> = {
  c: { comment: slashes, string: ["\\$?@?\"\"\"[\\s\\S]*?(?:\"\"\"|$)", "@\"(?:\"\"|[^\"])*\"?", ...quotes, backtick], keywords: c },
  script: { comment: hash, string: ["\"\"\"[\\s\\S]*?(?:\"\"\"|$)", ...quotes], keywords: "and as assert async await break case class continue def del do done elif else esac except export false fi finally for from function global if import in is lambda local not or pass raise return select self then true try until while with yield None True False param process begin end switch foreach", name: "\\$[\\w{}:@]+|(?:^|(?<=\\s))--?[A-Za-z][\\w-]*" },
  sql: { comment: ["--[^\\n]*", "\\/\\*[\\s\\S]*?(?:\\*\\/|$)"], string: ["'(?:''|[^'])*'?"], ignoreCase: true, keywords: "add all alter and as asc between bigint boolean by case check column commit concurrently conflict constraint create cross default delete desc distinct do drop else end exists explain false foreign from full function group having if in index inner insert int integer intersect into is join jsonb key left like limit listen materialized natural not nothing notify null offset on or order outer over partition primary references returning right rollback schema select set table text then timestamptz to trigger true truncate union unique update using values varchar view when where with" },
  json: { comment: slashes, string: [], keywords: "true false null", name: "\"(?:\\\\.|[^\"\\\\\\n])*\"(?=\\s*:)" },
  yaml: { comment: hash, string: quotes, keywords: "true false null yes no on off", name: "(?<=^\\s*(?:- )?)[\\w.$/-]+(?=\\s*:(?:\\s|$))" },
  markup: { comment: ["<!--[\\s\\S]*?(?:-->|$)"], string: ["\"[^\"\\n<>]*\""], keywords: "", name: "<\\/?[A-Za-z][\\w:.-]*|\\/?>" },
};
const languages: Record<string, string> = {
  csharp: "c", cs: "c", go: "c", ts: "c", typescript: "c", tsx: "c", js: "c", javascript: "c", jsx: "c", java: "c", rust: "c",
  rs: "c", cpp: "c", c: "c", razor: "c", css: "c", proto: "c",
  bash: "script", sh: "script", shell: "script", zsh: "script", python: "script", py: "script", powershell: "script", ps1: "script",
  dockerfile: "script", toml: "script", makefile: "script", ruby: "script",
  sql: "sql", json: "json", jsonc: "json", json5: "json", yaml: "yaml", yml: "yaml", html: "markup", xml: "markup", svg: "markup",
};

/** Code longer than this stays plain: looking through it would be felt. */
const maxChars = 60_000;

/**
 * Tells comments, strings, numbers and keywords apart, well enough to read by; undefined for a
 * language that is not known. The pieces join to the code again.
 */
export function highlight(code: string, language: string): Piece[] | undefined {
  const grammar = grammars[languages[language.toLowerCase()] ?? ""];
  if (grammar === undefined || code.length > maxChars) return undefined;
  const pattern = patternOf(grammar);
  const keywords = new Set(grammar.keywords.split(" "));
  const pieces: Piece[] = [];
  let at = 0;
  const plain = (to: number): void => {
    if (to > at) pieces.push({ text: code.slice(at, to) });
  };
  for (const match of code.matchAll(pattern)) {
    const groups = match.groups ?? {};
    const text = match[0];
    let kind: Piece["kind"];
    if (groups["comment"] !== undefined) kind = "comment";
    else if (groups["name"] !== undefined) kind = "name";
    else if (groups["string"] !== undefined) kind = "string";
    else if (groups["number"] !== undefined) kind = "number";
    else if (keywords.has(grammar.ignoreCase === true ? text.toLowerCase() : text)) kind = "keyword";
    if (kind === undefined || text === "") continue;
    plain(match.index);
    pieces.push({ text, kind });
    at = match.index + text.length;
  }
  plain(code.length);
  return pieces;
}

function patternOf(grammar: Grammar): RegExp {
  const groups = [
    ["comment", grammar.comment.join("|")],
    ["name", grammar.name ?? ""],
    ["string", [...grammar.string, ...(grammar.string.length === 0 ? [quotes[0]] : [])].join("|")],
    ["number", "(?<![\\w.])(?:0x[\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)(?!\\w)"],
    ["word", "[A-Za-z_$][\\w$]*"],
  ].filter(([, source]) => source !== "");
  return new RegExp(groups.map(([name, source]) => `(?<${name}>${source})`).join("|"), "gm");
}
