import { duration } from "../cluster/model.ts";
import { maxLatencies } from "./figures.ts";

const [width, height] = [320, 44];
/** A save that takes no longer than this, in milliseconds, is drawn low: quiet times look quiet. */
const floorMs = 100;

/** One bar a save, the latest at the right. */
export function Sparkline({ values }: { values: readonly number[] }) {
  const top = Math.max(floorMs, ...values);
  const step = width / maxLatencies;
  const left = maxLatencies - values.length;
  const text = values.length === 0 ? "No saves yet" : `The last ${values.length} saves, the longest ${duration(top)}`;
  return (
    <svg class="sparkline" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={text}>
      <line x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} />
      {values.map((ms, i) => {
        const bar = Math.max(1.5, Math.sqrt(ms / top) * (height - 3));
        return <rect key={i} class={ms > 4 * floorMs ? "slow" : ""} x={(left + i) * step + 0.5} width={step - 1} y={height - bar} height={bar} />;
      })}
    </svg>
  );
}
