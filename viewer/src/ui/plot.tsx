// uPlot in a component: a curve, or bars.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface PlotProps {
  /** The first list is x. */
  data: (number | null)[][];
  series: { label: string; color: string; bars?: boolean }[];
  xLabel: string;
  logX?: boolean;
  xText?: (value: number) => string;
  yText?: (value: number) => string;
  marks?: { x: number; label: string }[];
  height: number;
  ink: string;
  grid: string;
}

export function Plot(props: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const plot = new uPlot(options(props, element.clientWidth), props.data as uPlot.AlignedData, element);
    const observer = new ResizeObserver(() => plot.setSize({ width: Math.max(120, element.clientWidth), height: props.height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [props.data, props.ink, props.height]);
  return <div class="plot" ref={box} />;
}

function options(props: PlotProps, width: number): uPlot.Options {
  const axis = { stroke: props.ink, grid: { stroke: props.grid, width: 1 }, ticks: { stroke: props.grid, width: 1 }, font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif" };
  const xText = props.xText;
  const yText = props.yText;
  return {
    width: Math.max(120, width),
    height: props.height,
    legend: { show: props.series.length > 1 },
    cursor: { drag: { x: false, y: false } },
    scales: { x: { time: false, distr: props.logX ? 3 : 1 }, y: { range: (_self, _low, high) => [0, high > 0 ? high * 1.05 : 1] } },
    axes: [
      { ...axis, label: props.xLabel, labelSize: 16, size: 30, ...(xText ? { values: (_self: uPlot, values: number[]) => values.map((value) => (value === null ? "" : xText(value))) } : {}) },
      { ...axis, size: 60, ...(yText ? { values: (_self: uPlot, values: number[]) => values.map(yText) } : {}) },
    ],
    series: [
      { label: props.xLabel },
      ...props.series.map((item): uPlot.Series => {
        const bars = item.bars ? uPlot.paths.bars?.({ size: [0.9, 64], align: 1 }) : undefined;
        return { label: item.label, stroke: item.color, width: 1.5, fill: item.bars ? item.color : "transparent", points: { show: false }, ...(bars ? { paths: bars } : {}) };
      }),
    ],
    hooks: { draw: [(self) => drawMarks(self, props)] },
  };
}

/** Dashed lines with words at places of the x axis: the sizes of caches, for example. */
function drawMarks(plot: uPlot, props: PlotProps): void {
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = props.ink;
  ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.setLineDash([4, 4]);
  for (const mark of props.marks ?? []) {
    const x = plot.valToPos(mark.x, "x", true);
    if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, plot.bbox.top);
    ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
    ctx.stroke();
    ctx.fillText(mark.label.slice(0, 40), x + 4, plot.bbox.top + 12 * devicePixelRatio);
  }
  ctx.restore();
}

/** Colors of plots, from the page's style. */
export function plotColors(): { ink: string; grid: string; accent: string; lines: string[] } {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string): string => style.getPropertyValue(name).trim();
  return { ink: get("--faint"), grid: get("--line"), accent: get("--accent"), lines: [get("--accent"), "#ee8866", "#44bb99", "#b9a7d9", "#bbcc33", "#ffaabb"] };
}
