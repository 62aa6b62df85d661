/** The page's own icons, 16 × 16, drawn with the colour of the text. */
const paths = {
  chevron: "M6 4l4 4-4 4",
  search: "M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM11 11l3.5 3.5",
  menu: "M2 4h12M2 8h12M2 12h12",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5M7 7v3.5M9 7v3.5",
  edit: "M3 13l.7-3L10.5 3.2l2.3 2.3L6 12.3 3 13z",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  folder: "M2 4h4l1.5 1.5H14V13H2z",
  upload: "M8 11V3M4.5 6.5L8 3l3.5 3.5M3 13h10",
  download: "M8 3v8M4.5 7.5L8 11l3.5-3.5M3 13h10",
  history: "M2.5 8a5.5 5.5 0 1 0 1.6-3.9L2.5 5.7M2.5 2.5v3.2h3.2M8 5v3.2l2.2 1.3",
  data: "M5 3c-2 0-1 4-3 5 2 1 1 5 3 5M11 3c2 0 1 4 3 5-2 1-1 5-3 5",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1",
  moon: "M13 9.6A5.5 5.5 0 0 1 6.4 3a5.5 5.5 0 1 0 6.6 6.6z",
  system: "M2.5 3h11v7.5h-11zM6 13.5h4M8 10.5v3",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  check: "M3.5 8.5l3 3 6-7",
  warning: "M8 2.5l6 11H2zM8 6.5v3.2M8 11.6v.01",
  space: "M8 1.8l5.4 3.1v6.2L8 14.2l-5.4-3.1V4.9zM8 8l5.4-3.1M8 8v6.2M8 8L2.6 4.9",
  node: "M8 4.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7z",
  person: "M8 8a2.6 2.6 0 1 0 0-5.2A2.6 2.6 0 0 0 8 8zM3 13.5c.5-2.8 2.5-4 5-4s4.5 1.2 5 4",
  home: "M2.5 7.5L8 3l5.5 4.5M4 6.5V13h8V6.5",
  power: "M8 2.5v5M4.8 4.4a4.8 4.8 0 1 0 6.4 0",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.2l7.5 4.8L5 12.8z",
  restart: "M13 8a5 5 0 1 1-1.6-3.7M13.2 2.2v3h-3",
  leave: "M6.5 3H3v10h3.5M10 5l3 3-3 3M13 8H6.5",
  unlink: "M7 4.5l1-1a2.8 2.8 0 0 1 4 4l-1 1M9 11.5l-1 1a2.8 2.8 0 0 1-4-4l1-1M3 3l1.6 1.6M13 13l-1.6-1.6",
  robot: "M3.5 6h9v7h-9zM8 6V3M6.2 9v.01M9.8 9v.01M6.5 11.3h3M8 2.6v.01",
  pulse: "M1.5 8.5h3l2-5 3 9 2-4h3",
  link: "M6.5 9.5l3-3M7 4.5l1-1a2.8 2.8 0 0 1 4 4l-1 1M9 11.5l-1 1a2.8 2.8 0 0 1-4-4l1-1",
} as const;

export type GlyphName = keyof typeof paths;

export function Glyph(props: { name: GlyphName; class?: string }) {
  return (
    <svg class={`glyph ${props.class ?? ""}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={paths[props.name]} fill="none" stroke="currentColor" stroke-width={props.name === "more" ? 2.2 : 1.4} stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}

export function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" width="22" height="22" aria-hidden="true" focusable="false">
      <path d="M16 16L16 5M16 16L6.5 21.5M16 16l9.5 5.5M16 5L6.5 21.5h19z" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linejoin="round" opacity=".55" />
      <circle cx="16" cy="5.5" r="3.2" fill="currentColor" />
      <circle cx="6.5" cy="21.5" r="3.2" fill="currentColor" />
      <circle cx="25.5" cy="21.5" r="3.2" fill="currentColor" />
      <circle cx="16" cy="16" r="3.8" fill="var(--accent-fill)" />
    </svg>
  );
}
