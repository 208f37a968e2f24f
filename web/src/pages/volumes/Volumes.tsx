import { useMemo, useState } from "react";
import { api } from "../../api/client";
import type { Volume } from "../../api/types";
import { useLive } from "../../live/stream";
import { useData } from "../../live/useData";
import { useMay } from "../../session";
import { Dialog } from "../../ui/Dialog";
import { CheckField } from "../../ui/Field";
import { Page } from "../../ui/Page";
import { type Column, type Order, sorted, Table } from "../../ui/Table";
import { ReceiveStream } from "../snapshots/ReceiveStream";
import { BulkActions } from "./BulkActions";
import { columnsOf, storedHidden, storeHidden } from "./columns";
import { CreateVolume } from "./CreateVolume";

async function look(signal: AbortSignal) {
  const [volumes, pools] = await Promise.all([
    api.get("/v1/volumes", { signal }),
    api.get("/v1/pools", { signal }),
  ]);
  return { volumes: volumes.items, pools: pools.items };
}

const keyOf = (row: Volume) => `${row.pool}/${row.name}`;

interface ChooseProps {
  columns: Column<Volume>[];
  hidden: string[];
  onChange: (hidden: string[]) => void;
  onClose: () => void;
}

/** Which columns are shown; the browser remembers it. */
function ChooseColumns({ columns, hidden, onChange, onClose }: ChooseProps) {
  return (
    <Dialog title="Columns" onClose={onClose}>
      <div className="grid">
        {columns.slice(1).map(({ name }) => (
          <CheckField
            key={name}
            label={name}
            checked={!hidden.includes(name)}
            onChange={(shown) =>
              onChange(shown ? hidden.filter((known) => known !== name) : [...hidden, name])
            }
          />
        ))}
      </div>
    </Dialog>
  );
}

export function Volumes() {
  const { value, error } = useData("volumes", look, 30);
  const live = useLive().volumes;
  const operator = useMay("operator");
  const [find, setFind] = useState("");
  const [open, setOpen] = useState<"create" | "receive" | "columns">();
  const [order, setOrder] = useState<Order>({ name: "Volume", descending: false });
  const [hidden, setHidden] = useState(storedHidden);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const columns = useMemo(() => columnsOf(live), [live]);
  const shown = columns.filter((column) => !hidden.includes(column.name));
  const wanted = find.toLowerCase();
  const rows = useMemo(() => {
    const found = (value?.volumes ?? []).filter((row) => keyOf(row).toLowerCase().includes(wanted));
    return sorted(found, columns, order);
  }, [value, wanted, columns, order]);
  // Only what is seen is acted on: neither what the filter hides nor what is gone.
  const selected = rows.filter((row) => chosen.has(keyOf(row)));
  const close = () => setOpen(undefined);
  return (
    <Page
      title="Volumes"
      error={error}
      actions={
        <>
          <input
            type="search"
            aria-label="Find a volume"
            placeholder="Find"
            value={find}
            onChange={(event) => setFind(event.target.value)}
          />
          <button type="button" onClick={() => setOpen("columns")}>
            Columns
          </button>
          {operator && value && value.pools.length > 0 && (
            <>
              <button type="button" onClick={() => setOpen("receive")}>
                Receive
              </button>
              <button type="button" className="primary" onClick={() => setOpen("create")}>
                New volume
              </button>
            </>
          )}
        </>
      }
    >
      {operator && <BulkActions volumes={selected} onClear={() => setChosen(new Set())} />}
      {value && (
        <Table
          label="Volumes"
          columns={shown}
          rows={rows}
          rowKey={keyOf}
          rowClass={(row) => (operator && chosen.has(keyOf(row)) ? "chosen" : undefined)}
          empty={find ? "No matching volumes." : "No volumes yet."}
          tall={20}
          order={order}
          onOrder={setOrder}
          selection={operator ? { keys: chosen, onChange: setChosen } : undefined}
        />
      )}
      {open === "receive" && value && (
        <ReceiveStream pools={value.pools.map((pool) => pool.name)} onClose={close} />
      )}
      {open === "create" && value && <CreateVolume pools={value.pools} onClose={close} />}
      {open === "columns" && (
        <ChooseColumns
          columns={columns}
          hidden={hidden}
          onChange={(names) => {
            setHidden(names);
            storeHidden(names);
          }}
          onClose={close}
        />
      )}
    </Page>
  );
}
