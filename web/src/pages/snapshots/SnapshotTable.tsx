import { useMemo, useState } from "react";
import { api } from "../../api/client";
import type { Snapshot } from "../../api/types";
import { bytes, many, time } from "../../format";
import { href } from "../../router";
import { useMay } from "../../session";
import { Confirm, type Confirmation } from "../../ui/Confirm";
import { Table, type Column } from "../../ui/Table";
import { CloneSnapshot } from "./CloneSnapshot";
import { RenameSnapshot } from "./RenameSnapshot";
import { SendSnapshot } from "./SendSnapshot";
import { flat, tree, type Row } from "./tree";

function full(snapshot: Snapshot): string {
  return `${snapshot.pool}/${snapshot.volume}@${snapshot.name}`;
}

function path({ pool, volume, name }: Snapshot) {
  return { pool, volume, snapshot: name };
}

function deletion(snapshot: Snapshot): Confirmation {
  return {
    title: `Delete ${full(snapshot)}`,
    what: `Snapshot ${full(snapshot)} is lost.`,
    name: full(snapshot),
    action: "Delete snapshot",
    run: () => api.delete("/v1/snapshots/{pool}/{volume}/{snapshot}", { path: path(snapshot) }),
  };
}

function rollBack(snapshot: Snapshot): Confirmation {
  const { pool, volume, name } = snapshot;
  return {
    title: `Roll ${pool}/${volume} back`,
    what: `Data written to ${pool}/${volume} since ${full(snapshot)} is lost.`,
    name: full(snapshot),
    action: "Roll back volume",
    run: () =>
      api.post("/v1/volumes/{pool}/{volume}/rollback", { path: { pool, volume }, body: { snapshot: name } }),
  };
}

/** A dialog about a snapshot. */
interface Opened {
  dialog: "clone" | "rename" | "send";
  of: Snapshot;
}

const DIALOGS = [
  ["clone", "Clone"],
  ["rename", "Rename"],
  ["send", "Send"],
] as const;

interface ActionsProps {
  snapshot: Snapshot;
  onConfirm: (what: Confirmation) => void;
  onOpen: (what: Opened) => void;
}

function Actions({ snapshot, onConfirm, onOpen }: ActionsProps) {
  const name = full(snapshot);
  const hold = () =>
    api.put("/v1/snapshots/{pool}/{volume}/{snapshot}", {
      path: path(snapshot),
      body: { held: !snapshot.held },
    });
  return (
    <span className="actions">
      {DIALOGS.map(([dialog, action]) => (
        <button
          key={dialog}
          type="button"
          className="small"
          aria-label={`${action} ${name}`}
          onClick={() => onOpen({ dialog, of: snapshot })}
        >
          {action}
        </button>
      ))}
      <button
        type="button"
        className="small"
        aria-label={`${snapshot.held ? "Release" : "Hold"} ${name}`}
        onClick={() => void hold()}
      >
        {snapshot.held ? "Release" : "Hold"}
      </button>
      <button
        type="button"
        className="small"
        aria-label={`Roll back to ${name}`}
        onClick={() => onConfirm(rollBack(snapshot))}
      >
        Roll back
      </button>
      <button
        type="button"
        className="small"
        aria-label={`Delete ${name}`}
        disabled={snapshot.held}
        onClick={() => onConfirm(deletion(snapshot))}
      >
        Delete
      </button>
    </span>
  );
}

interface Props {
  snapshots: readonly Snapshot[];
  /** With the volumes that they are of, and clones beneath. */
  tree?: boolean;
  tall?: number;
}

export function SnapshotTable({ snapshots, tree: asTree, tall = 10 }: Props) {
  const operator = useMay("operator");
  const [confirm, setConfirm] = useState<Confirmation>();
  const [opened, setOpened] = useState<Opened>();
  const close = () => setOpened(undefined);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(
    () => (asTree ? tree(snapshots, closed) : flat(snapshots)),
    [asTree, snapshots, closed],
  );

  function toggle(key: string) {
    const next = new Set(closed);
    if (!next.delete(key)) next.add(key);
    setClosed(next);
  }

  const columns: Column<Row>[] = [
    {
      name: "Snapshot",
      width: "minmax(9rem, 2fr)",
      cell: (row) => (
        <span style={{ paddingLeft: `${row.depth * 0.9}rem` }}>
          {row.kind === "volume" ? (
            <>
              <button
                type="button"
                className="twist"
                aria-expanded={!closed.has(row.key)}
                aria-label={`Snapshots of ${row.name}`}
                onClick={() => toggle(row.key)}
              >
                {closed.has(row.key) ? "▸" : "▾"}
              </button>
              <a href={href("volumes", ...row.name.split("/"))}>{row.name}</a>
            </>
          ) : (
            row.snapshot.name
          )}
        </span>
      ),
    },
    {
      name: "Taken",
      width: "9.5rem",
      cell: (row) =>
        row.kind === "volume" ? (
          <span className="about">{many(row.snapshots, "snapshot")}</span>
        ) : (
          <time>{time(row.snapshot.created_s)}</time>
        ),
    },
    {
      name: "Stored",
      width: "5.5rem",
      right: true,
      wide: true,
      cell: (row) => bytes(row.kind === "volume" ? row.stored : row.snapshot.stored),
    },
    {
      name: "By",
      width: "minmax(5rem, 1fr)",
      wide: true,
      cell: (row) =>
        row.kind === "snapshot" && (
          <span className="about">
            {[row.snapshot.schedule, row.snapshot.held && "held"].filter(Boolean).join(", ")}
          </span>
        ),
    },
  ];
  if (operator) {
    columns.push({
      name: "",
      width: "25.5rem",
      right: true,
      wide: true,
      cell: (row) =>
        row.kind === "snapshot" && (
          <Actions snapshot={row.snapshot} onConfirm={setConfirm} onOpen={setOpened} />
        ),
    });
  }
  return (
    <>
      <Table
        label="Snapshots"
        columns={columns}
        rows={rows}
        rowKey={(row) => row.key}
        empty="No snapshots."
        tall={tall}
      />
      {confirm && <Confirm of={confirm} onClose={() => setConfirm(undefined)} />}
      {opened?.dialog === "clone" && <CloneSnapshot of={opened.of} onClose={close} />}
      {opened?.dialog === "rename" && <RenameSnapshot of={opened.of} onClose={close} />}
      {opened?.dialog === "send" && <SendSnapshot of={opened.of} onClose={close} />}
    </>
  );
}
