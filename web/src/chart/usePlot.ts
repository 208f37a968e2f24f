// A uPlot of its own in an element: as wide as that, drawn again in another theme, and removed at the end.
import { useEffect, useRef, type RefObject } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useThemeKey } from "./colours";

/** Height of a chart in pixels. */
export const TALL = 170;

/**
 * Shows `data` in the element of the answer. `options` is called with that element when `shape` or the theme becomes
 * another; other changes only replace the data.
 */
export function usePlot(
  shape: string,
  data: uPlot.AlignedData,
  options: (element: HTMLElement) => Omit<uPlot.Options, "width" | "height">,
): RefObject<HTMLDivElement | null> {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef({ data, options });
  const theme = useThemeKey();
  useEffect(() => {
    latest.current = { data, options };
  });
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const size = () => ({ width: Math.max(element.clientWidth, 120), height: TALL });
    const now = latest.current;
    const made = new uPlot({ ...now.options(element), ...size() }, now.data, element);
    plot.current = made;
    const watch = new ResizeObserver(() => {
      if (made.width !== size().width) made.setSize(size());
    });
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [shape, theme]);
  useEffect(() => {
    if (plot.current && plot.current.data !== data) plot.current.setData(data);
  }, [data]);
  return box;
}
