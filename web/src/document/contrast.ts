/** Keeps documents with colours of their own readable in both themes. */

export type Rgb = readonly [r: number, g: number, b: number, alpha: number];

/** Below this the text counts as not readable (AA for large text). */
const least = 3;

/** The first colour in a computed value such as `rgb(1, 2, 3)`, `rgba(…)`, `color(srgb …)` or a gradient of these. */
export function firstColor(value: string): Rgb | undefined {
  const rgb = /rgba?\(\s*([\d.]+)[,\s]+([\d.]+)[,\s]+([\d.]+)(?:\s*[,/]\s*([\d.]+%?))?\s*\)/.exec(value);
  if (rgb !== null) return [Number(rgb[1]), Number(rgb[2]), Number(rgb[3]), alphaOf(rgb[4])];
  const srgb = /color\(srgb\s+([\d.e-]+)\s+([\d.e-]+)\s+([\d.e-]+)(?:\s*\/\s*([\d.]+%?))?\)/.exec(value);
  if (srgb !== null) return [Number(srgb[1]) * 255, Number(srgb[2]) * 255, Number(srgb[3]) * 255, alphaOf(srgb[4])];
  return undefined;
}

function alphaOf(text: string | undefined): number {
  if (text === undefined) return 1;
  return text.endsWith("%") ? Number(text.slice(0, -1)) / 100 : Number(text);
}

function luminance([r, g, b]: Rgb): number {
  const linear = (c: number): number => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/** The contrast of two colours as WCAG defines it, from 1 to 21. */
export function contrast(a: Rgb, b: Rgb): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** Dark or light text, whichever is read better on a background. */
export function textOn(background: Rgb): string {
  return contrast(background, [27, 31, 36, 1]) >= contrast(background, [255, 255, 255, 1]) ? "#1b1f24" : "#ffffff";
}

/** The colour behind an element: its own or that of the nearest one above that is not transparent. */
function backgroundOf(element: Element): Rgb | undefined {
  for (let at: Element | null = element; at !== null; at = at.parentElement) {
    const style = getComputedStyle(at);
    const color = firstColor(style.backgroundColor);
    if (color !== undefined && color[3] > 0.5) return color;
    const image = style.backgroundImage === "none" ? undefined : firstColor(style.backgroundImage);
    if (image !== undefined && image[3] > 0.5) return image;
  }
  return undefined;
}

const mark = "contrastFixed";

/**
 * Gives elements with a colour or background of their own a text colour that can be read, where
 * theirs can not. Call again after a change of theme: what was changed before is undone first.
 */
export function fixContrast(root: Element): void {
  for (const element of root.querySelectorAll<HTMLElement>(`[data-contrast-fixed]`)) {
    element.style.color = element.dataset[mark] ?? "";
    delete element.dataset[mark];
  }
  for (const element of root.querySelectorAll<HTMLElement>("[style*='color'], [style*='background'], [bgcolor], font[color]")) {
    const color = firstColor(getComputedStyle(element).color);
    const background = backgroundOf(element);
    if (color === undefined || background === undefined || contrast(color, background) >= least) continue;
    element.dataset[mark] = element.style.color;
    element.style.color = textOn(background);
  }
}
