import { useVirtualizer } from "@tanstack/react-virtual";
import { useRef, type ReactNode } from "react";

export interface Column<T> {
  name: string;
  /** The width, as a grid's track. */
  width: string;
  right?: boolean;
  /** Left out on narrow screens. */
  wide?: boolean;
  cell: (row: T) => ReactNode;
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: readonly T[];
  rowKey: (row: T) => string;
  empty: ReactNode;
  /** A class of a row. */
  rowClass?: (row: T) => string | undefined;
  /** Rows that are visible before the table scrolls. */
  tall?: number;
}

const ROW = 36;

function tracks<T>(columns: Column<T>[]): string {
  return columns.map((column) => column.width).join(" ");
}

function cellClass<T>(column: Column<T>): string {
  return `cell${column.right ? " right" : ""}${column.wide ? " wide" : ""}`;
}

/** A table of any length: only the rows that are seen are in the document. */
export function Table<T>({ label, columns, rows, rowKey, empty, rowClass, tall = 16 }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 8,
  });
  if (rows.length === 0) return <div className="empty">{empty}</div>;
  const narrow = columns.filter((column) => !column.wide);
  const style = { "--tracks": tracks(columns), "--narrow-tracks": tracks(narrow) } as React.CSSProperties;
  const scrolls = rows.length > tall;
  return (
    <div className="table" role="table" aria-label={label} aria-rowcount={rows.length + 1} style={style}>
      <div role="rowgroup">
        <div className="row head" role="row">
          {columns.map((column) => (
            <div key={column.name} className={cellClass(column)} role="columnheader">
              {column.name}
            </div>
          ))}
        </div>
      </div>
      <div
        ref={scroller}
        className="rows"
        role="rowgroup"
        tabIndex={scrolls ? 0 : undefined}
        aria-label={scrolls ? `${label}, rows` : undefined}
        style={{ height: Math.min(rows.length, tall) * ROW }}
      >
        <div className="spread" role="presentation" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index]!;
            return (
              <div
                key={rowKey(row)}
                className={`row ${rowClass?.(row) ?? ""}`}
                role="row"
                aria-rowindex={item.index + 2}
                style={{ transform: `translateY(${item.start}px)`, height: ROW }}
              >
                {columns.map((column) => (
                  <div key={column.name} className={cellClass(column)} role="cell">
                    {column.cell(row)}
                  </div>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
