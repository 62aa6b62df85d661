import { useState } from "preact/hooks";
import { Glyph, type GlyphName } from "./Glyph.tsx";

/** What a node's icon field is: an address, a drawing, a sign to write, or a name that the page has no picture for. */
export type IconKind =
  | { kind: "image"; src: string }
  /** Drawn with the colour of the text: a picture of one colour would vanish in one of the themes. */
  | { kind: "mask"; src: string }
  | { kind: "text"; text: string }
  | { kind: "glyph"; name: GlyphName };

export function iconOf(icon: string | undefined, nodeType: string | undefined): IconKind {
  const value = (icon ?? "").trim();
  if (value.startsWith("/static/") && value.endsWith(".svg")) return { kind: "mask", src: value };
  if (value.startsWith("/")) return { kind: "image", src: value };
  if (value.startsWith("<svg")) {
    const src = `data:image/svg+xml,${encodeURIComponent(value)}`;
    return { kind: value.includes("currentColor") ? "mask" : "image", src };
  }
  if (value !== "" && [...value].length <= 4 && /[^\u0000-\u02FF]/.test(value)) return { kind: "text", text: value };
  return { kind: "glyph", name: glyphOf(nodeType) };
}

function glyphOf(nodeType: string | undefined): GlyphName {
  switch (nodeType) {
    case "Space": return "space";
    case "Markdown": return "file";
    case "User": return "person";
    case "Activity": return "history";
    case "NodeType": return "data";
    case undefined: return "folder";
    default: return /article|document|report/i.test(nodeType) ? "file" : "node";
  }
}

export function NodeIcon(props: { icon?: string | undefined; nodeType?: string | undefined; size?: "large" }) {
  const [broken, setBroken] = useState("");
  const icon = iconOf(props.icon === broken ? undefined : props.icon, props.nodeType);
  const classes = `node-icon ${props.size ?? ""}`;
  switch (icon.kind) {
    case "image":
      return <img class={classes} src={icon.src} alt="" loading="lazy" onError={() => setBroken(props.icon ?? "")} />;
    case "mask":
      return (
        <span class={`${classes} mask`} style={{ maskImage: `url("${icon.src}")` }} aria-hidden="true">
          {/* A mask does not tell that its picture is missing; an image does. */}
          {icon.src.startsWith("/") && <img src={icon.src} alt="" hidden onError={() => setBroken(props.icon ?? "")} />}
        </span>
      );
    case "text":
      return <span class={`${classes} text`} aria-hidden="true">{icon.text}</span>;
    case "glyph":
      return <span class={classes} aria-hidden="true"><Glyph name={icon.name} /></span>;
  }
}
