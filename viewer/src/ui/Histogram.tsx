// How durations are spread: bars with logarithmic edges.

import { formatCount, formatDuration, type Clock } from "../format";

interface Props {
  edges: number[];
  counts: number[];
  clock: Clock;
  empty: string;
}

export function Histogram({ edges, counts, clock, empty }: Props) {
  const first = counts.findIndex((count) => count > 0);
  if (first < 0) return <p class="empty-table">{empty}</p>;
  const last = counts.findLastIndex((count) => count > 0);
  const most = counts.reduce((max, count) => Math.max(max, count), 1);
  const shown = counts.slice(first, last + 1);
  const total = counts.reduce((sum, count) => sum + count, 0);
  return (
    <figure class="histogram">
      <figcaption class="faint">Number of slices by duration</figcaption>
      <ol class="bars" aria-label="Histogram of durations">
        {shown.map((count, i) => {
          const [from, to] = [edges[first + i] ?? 0, edges[first + i + 1]];
          const range = to === undefined ? `${formatDuration(from, clock)} and more` : `${formatDuration(from, clock)} to ${formatDuration(to, clock)}`;
          return (
            <li key={i} title={`${range}: ${formatCount(count)} (${((count / total) * 100).toFixed(1)} %)`}>
              <span class="bar-count">{count > 0 ? formatCount(count) : ""}</span>
              <span class="bar-fill" style={{ height: `${count > 0 ? Math.max(1, (count / most) * 100) : 0}%` }} />
              <span class="bar-edge">{formatDuration(from, clock)}</span>
              <span class="visually-hidden">{range}: {formatCount(count)}</span>
            </li>
          );
        })}
      </ol>
    </figure>
  );
}
