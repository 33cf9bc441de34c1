import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Schemas } from "../api/types";
import { millis } from "../lib/millis";
import { absolute } from "../lib/time";

const HEIGHT_PX = 150;

/** A logarithm has no place for nothing. */
const LEAST_MS = 0.1;

/** So much time is shown at least. */
const LEAST_SPAN_S = 300;

interface Props {
  probes: Schemas["ProbeOutcome"][];
  utc: boolean;
  /** What the chart says, for those who do not see it. */
  label: string;
}

/** The time that probes took, of half of the Beacons, of nearly all, and of the last one. */
export default function LatencyChart({ probes, utc, label }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(undefined);
  const scheme = useComputedColorScheme();

  // biome-ignore lint/correctness/useExhaustiveDependencies: other colours need another chart
  useEffect(() => {
    const at = place.current;
    if (!at) return;
    chart.current = new uPlot(options(at, utc), [[], [], [], []], at);
    const follow = new ResizeObserver(() => {
      chart.current?.setSize({ width: at.clientWidth, height: HEIGHT_PX });
    });
    follow.observe(at);
    return () => {
      follow.disconnect();
      chart.current?.destroy();
    };
  }, [scheme, utc]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: another chart is given the same again
  useEffect(() => {
    const told = probes.filter(({ beacons }) => beacons > 0);
    const column = (of: (probe: Schemas["ProbeOutcome"]) => number) => told.map(of);
    chart.current?.setData([
      column(({ sent_unix_ms }) => sent_unix_ms / 1000),
      column(({ p50_ms }) => Math.max(p50_ms, LEAST_MS)),
      column(({ p99_ms }) => Math.max(p99_ms, LEAST_MS)),
      column(({ max_ms }) => Math.max(max_ms, LEAST_MS)),
    ]);
  }, [probes, scheme, utc]);

  return <div ref={place} role="img" aria-label={label} className="chart" />;
}

function options(at: HTMLElement, utc: boolean): uPlot.Options {
  const style = getComputedStyle(at);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const dim = color("--mantine-color-dimmed");
  const font = `11px ${color("--mantine-font-family")}`;
  const grid = { stroke: color("--mantine-color-default-border"), width: 1 };
  const value = (_: uPlot, ms: number | null) => (ms == null ? "–" : millis(ms));
  const line = (label: string, stroke: string, dash?: number[]) => ({
    label,
    stroke,
    dash,
    width: 1.5,
    value,
    points: { size: 3, stroke },
  });
  return {
    width: Math.max(at.clientWidth, 100),
    height: HEIGHT_PX,
    padding: [8, 8, 0, 0],
    cursor: { drag: { x: false, y: false } },
    tzDate: (seconds) => (utc ? uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") : new Date(seconds * 1000)),
    // Times differ by powers of ten: on a line with an even scale one slow probe would hide all others.
    scales: {
      x: { range: (_, first, last) => [Math.min(first ?? last, last - LEAST_SPAN_S), last] },
      y: { distr: 3, range: (_, least, most) => [powerBelow(least), powerAbove(most)] },
    },
    axes: [
      { stroke: dim, grid: { show: false }, ticks: grid, font, values: (_, ticks) => ticks.map(clock(utc)) },
      {
        stroke: dim,
        grid,
        ticks: grid,
        font,
        size: 64,
        splits: powers,
        values: (_, ticks) => ticks.map((ms) => (ms === null ? null : millis(ms))),
      },
    ],
    series: [
      { label: "Sent", value: (_, seconds) => (seconds == null ? "–" : absolute(seconds * 1000, utc)) },
      line("half of the hosts", color("--mantine-color-teal-filled")),
      line("99 of 100", color("--mantine-primary-color-filled"), [6, 3]),
      line("the last one", dim, [2, 3]),
    ],
  };
}

/** A line for each power of ten. */
const powers = (_: uPlot, __: number, least: number, most: number) => {
  const first = Math.round(Math.log10(least));
  const last = Math.round(Math.log10(most));
  return Array.from({ length: last - first + 1 }, (_, place) => 10 ** (first + place));
};

const powerBelow = (ms: number | null) => 10 ** Math.floor(Math.log10(Math.max(ms ?? 1, 0.1)));
const powerAbove = (ms: number | null) =>
  10 ** Math.max(1, Math.ceil(Math.log10(Math.max(ms ?? 10, 0.1) * 1.01)));

const clock = (utc: boolean) => (seconds: number) => {
  const date = new Date(seconds * 1000);
  const [hours, minutes] = utc
    ? [date.getUTCHours(), date.getUTCMinutes()]
    : [date.getHours(), date.getMinutes()];
  return `${String(hours).padStart(2, "0")}:${String(minutes).padStart(2, "0")}`;
};
