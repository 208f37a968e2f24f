import { useEffect, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import { bytes } from "../../format";
import { STRIPES, columnsFor, stripesOf, type Palette, type Picture, type Rgb } from "./picture";

interface Props {
  label: string;
  picture: Picture;
  height: number;
  chosen?: number | undefined;
  onChoose: (cell: number) => void;
  onZoom?: ((cell: number) => void) | undefined;
}

/** How long a part that changed is lit, in milliseconds. */
const LIT = 1500;

/** A colour of the page's style as it is now. */
function resolved(element: HTMLElement, name: string): string {
  element.style.color = `var(${name})`;
  const colour = getComputedStyle(element).color;
  element.style.color = "";
  return colour;
}

function rgb(element: HTMLElement, name: string): Rgb {
  const [red = 0, green = 0, blue = 0] = (resolved(element, name).match(/[\d.]+/g) ?? []).map(Number);
  return [red, green, blue];
}

function paletteOf(element: HTMLElement): Palette {
  return {
    ram: rgb(element, "--map-ram"),
    fast: rgb(element, "--map-fast"),
    slow: rgb(element, "--map-slow"),
    empty: rgb(element, "--map-empty"),
  };
}

/** Draws the parts, a pixel a stripe, into `small`, and that as big as the canvas is. */
function draw(
  canvas: HTMLCanvasElement,
  small: HTMLCanvasElement,
  picture: Picture,
  chosen: number | undefined,
): boolean {
  const context = canvas.getContext("2d");
  const pixels = small.getContext("2d");
  if (!context || !pixels) return false;
  const cells = picture.codes.length;
  const columns = columnsFor(cells, canvas.width, canvas.height);
  const rows = Math.ceil(cells / columns);
  small.width = columns * STRIPES;
  small.height = rows;
  const image = pixels.createImageData(columns * STRIPES, rows);
  const palette = paletteOf(canvas);
  const now = performance.now();
  let lit = false;
  for (let at = 0; at < cells; at += 1) {
    const light = Math.max(0, 1 - (now - picture.changed[at]!) / LIT) * 0.6;
    lit ||= light > 0;
    stripesOf(picture.codes[at]!, palette).forEach((colour, stripe) => {
      const pixel = (at * STRIPES + stripe) * 4;
      for (let part = 0; part < 3; part += 1) {
        image.data[pixel + part] = colour[part]! + (255 - colour[part]!) * light;
      }
      image.data[pixel + 3] = 255;
    });
  }
  pixels.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  const [wide, tall] = [canvas.width / columns, canvas.height / rows];
  if (Math.min(wide, tall) >= 6) {
    context.fillStyle = resolved(canvas, "--surface");
    for (let column = 1; column < columns; column += 1) {
      context.fillRect(Math.round(column * wide) - 1, 0, 1, canvas.height);
    }
    for (let row = 1; row < rows; row += 1) context.fillRect(0, Math.round(row * tall) - 1, canvas.width, 1);
  }
  if (chosen !== undefined && chosen < cells) {
    context.strokeStyle = resolved(canvas, "--text");
    context.lineWidth = 2;
    context.strokeRect((chosen % columns) * wide, Math.floor(chosen / columns) * tall, wide, tall);
  }
  return lit;
}

/** A volume's map: hue the tier, brightness the heat, what moved lights up. Arrow keys and Enter do what a pointer does. */
export function MapCanvas({ label, picture, height, chosen, onChoose, onZoom }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [hover, setHover] = useState<number>();
  const cells = picture.codes.length;
  const columns = columnsFor(cells, width || 1, height);
  const rows = Math.ceil(cells / columns);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  useEffect(() => {
    const element = canvas.current;
    if (!element || width === 0) return undefined;
    const small = document.createElement("canvas");
    const scale = window.devicePixelRatio;
    element.width = width * scale;
    element.height = height * scale;
    let frame = 0;
    let last = "";
    const step = () => {
      // Drawn again only while something is lit, or when something else is to be seen.
      const state = `${chosen} ${picture.start} ${picture.changed.reduce((most, at) => Math.max(most, at), 0)} ${document.documentElement.dataset["theme"]}`;
      if (state !== last && !draw(element, small, picture, chosen)) last = state;
      frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
    return () => cancelAnimationFrame(frame);
  }, [picture, width, height, chosen]);

  function cellAt(event: PointerEvent<HTMLCanvasElement>): number | undefined {
    const box = event.currentTarget.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * columns);
    const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
    const cell = row * columns + column;
    return column >= 0 && column < columns && cell >= 0 && cell < cells ? cell : undefined;
  }

  function key(event: KeyboardEvent) {
    const steps: Record<string, number> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -columns,
      ArrowDown: columns,
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      onChoose(Math.min(Math.max((chosen ?? -step) + step, 0), cells - 1));
    } else if (event.key === "Enter" && chosen !== undefined) {
      onZoom?.(chosen);
    }
  }

  const shown = hover ?? chosen;
  const place =
    shown === undefined ? "" : bytes(picture.start + Math.floor((picture.length / cells) * shown));
  return (
    <div className="map-box">
      <canvas
        ref={canvas}
        style={{ height }}
        role="application"
        aria-label={`${label}. Arrow keys choose a part, Enter looks closer.`}
        tabIndex={0}
        onPointerMove={(event) => setHover(cellAt(event))}
        onPointerLeave={() => setHover(undefined)}
        onPointerUp={(event) => {
          const cell = cellAt(event);
          if (cell !== undefined) onChoose(cell);
        }}
        onDoubleClick={() => chosen !== undefined && onZoom?.(chosen)}
        onKeyDown={key}
      />
      <div className="map-scale">
        <span>{bytes(picture.start)}</span>
        <span aria-live="polite">{place && `at ${place}`}</span>
        <span>{bytes(picture.start + picture.length)}</span>
      </div>
    </div>
  );
}
