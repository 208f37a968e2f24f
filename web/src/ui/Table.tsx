import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState, type ReactNode } from "react";

export interface Column<T> {
  name: string;
  /** The width, as a grid's track. */
  width: string;
  right?: boolean;
  /** Left out on narrow screens. */
  wide?: boolean;
  cell: (row: T) => ReactNode;
  /** What rows are sorted by; a column without it cannot be sorted by. */
  by?: (row: T) => string | number;
}

/** The column that rows are sorted by. */
export interface Order {
  name: string;
  descending: boolean;
}

/** Rows that are selected, by their keys. */
export interface Selection {
  keys: ReadonlySet<string>;
  onChange: (keys: ReadonlySet<string>) => void;
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
  order?: Order | undefined;
  onOrder?: ((order: Order) => void) | undefined;
  selection?: Selection | undefined;
}

const ROW = 36;

/** Rows in an order; those that are equal keep theirs. */
export function sorted<T>(rows: readonly T[], columns: readonly Column<T>[], order: Order): readonly T[] {
  const by = columns.find((column) => column.name === order.name)?.by;
  if (!by) return rows;
  const sign = order.descending ? -1 : 1;
  const compare = (a: string | number, b: string | number) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), "en", { numeric: true });
  return rows
    .map((row) => ({ row, value: by(row) }))
    .sort((a, b) => sign * compare(a.value, b.value))
    .map(({ row }) => row);
}

/** The order after a click on a column's head: ascending, then descending; figures the other way round. */
export function orderAfter(before: Order | undefined, name: string, right: boolean): Order {
  return { name, descending: before?.name === name ? !before.descending : right };
}

function checkColumn<T>(
  { keys, onChange }: Selection,
  label: string,
  rows: readonly T[],
  rowKey: (row: T) => string,
): { head: ReactNode; column: Column<T> } {
  const all = rows.length > 0 && rows.every((row) => keys.has(rowKey(row)));
  const head = (
    <input
      type="checkbox"
      aria-label={`Select all ${label.toLowerCase()}`}
      checked={all}
      onChange={() => onChange(new Set(all ? [] : rows.map(rowKey)))}
    />
  );
  const cell = (row: T) => {
    const key = rowKey(row);
    return (
      <input
        type="checkbox"
        aria-label={`Select ${key}`}
        checked={keys.has(key)}
        onChange={() => {
          const next = new Set(keys);
          if (!next.delete(key)) next.add(key);
          onChange(next);
        }}
      />
    );
  };
  return { head, column: { name: "", width: "1.2rem", cell } };
}

function Head<T>({ column, order, onOrder }: { column: Column<T> } & Pick<Props<T>, "order" | "onOrder">) {
  const isOrdered = order?.name === column.name;
  const direction = order?.descending ? "descending" : "ascending";
  if (!column.by || !onOrder) {
    return (
      <div className={cellClass(column)} role="columnheader">
        {column.name}
      </div>
    );
  }
  return (
    <div className={cellClass(column)} role="columnheader" aria-sort={isOrdered ? direction : "none"}>
      <button
        type="button"
        className="sort"
        onClick={() => onOrder(orderAfter(order, column.name, column.right ?? false))}
      >
        {column.name}
        {isOrdered && <span aria-hidden="true">{order.descending ? "▾" : "▴"}</span>}
      </button>
    </div>
  );
}

function tracks<T>(columns: Column<T>[]): string {
  return columns.map((column) => column.width).join(" ");
}

function cellClass<T>(column: Column<T>): string {
  return `cell${column.right ? " right" : ""}${column.wide ? " wide" : ""}`;
}

/** A table of any length: only the rows that are seen are in the document. */
export function Table<T>(props: Props<T>) {
  const { label, rows, rowKey, empty, rowClass, tall = 16, order, onOrder, selection } = props;
  const check = selection && checkColumn(selection, label, rows, rowKey);
  const columns = check ? [check.column, ...props.columns] : props.columns;
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 8,
  });
  // On a narrow screen columns may be wider than the table, which then scrolls sideways, with its head.
  const head = useRef<HTMLDivElement>(null);
  const [overflows, setOverflows] = useState(false);
  const width = virtual.scrollRect?.width;
  const template = tracks(columns);
  useEffect(() => {
    if (scroller.current) setOverflows(scroller.current.scrollWidth > scroller.current.clientWidth);
  }, [width, template, rows.length]);
  if (rows.length === 0) return <div className="empty">{empty}</div>;
  const narrow = columns.filter((column) => !column.wide);
  const style = { "--tracks": template, "--narrow-tracks": tracks(narrow) } as React.CSSProperties;
  const scrolls = rows.length > tall || overflows;
  return (
    <div className="table" role="table" aria-label={label} aria-rowcount={rows.length + 1} style={style}>
      <div ref={head} className="heads" role="rowgroup">
        <div className="row head" role="row">
          {check && (
            <div className="cell" role="columnheader">
              {check.head}
            </div>
          )}
          {props.columns.map((column) => (
            <Head key={column.name} column={column} order={order} onOrder={onOrder} />
          ))}
        </div>
      </div>
      <div
        ref={scroller}
        className="rows"
        role="rowgroup"
        tabIndex={scrolls ? 0 : undefined}
        onScroll={(event) => head.current?.scrollTo(event.currentTarget.scrollLeft, 0)}
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
