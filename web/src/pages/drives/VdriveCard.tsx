import { useState } from "react";
import { api } from "../../api/client";
import type { Drive, Vdrive } from "../../api/types";
import { bytes, count, percent } from "../../format";
import { HistoryButton } from "../../history/HistoryButton";
import { useMay } from "../../session";
import type { Confirmation } from "../../ui/Confirm";
import { State } from "../../ui/State";
import { BringOnline } from "./BringOnline";
import { DriveHealth } from "./DriveHealth";
import { ReplaceDrive } from "./ReplaceDrive";

function layoutText({ layout }: Vdrive): string {
  return layout.kind === "stripe" ? `stripe of ${bytes(layout.chunk)}` : layout.kind;
}

/** Bytes that were written since the drive joined, and how often that is its size a day. */
function wear(drive: Drive): string {
  const total = drive.wear?.total ?? 0;
  const daily = drive.wear?.daily;
  if (daily === undefined || daily === null) return `${bytes(total)} written`;
  return `${bytes(total)} written, ${(daily / Math.max(drive.size, 1)).toFixed(2)} drive writes per day`;
}

function faults(drive: Drive): string {
  const told: [number, string][] = [
    [drive.errors, "errors"],
    [drive.timeouts ?? 0, "timeouts"],
    [drive.repaired, "repaired"],
  ];
  return told
    .filter(([number]) => number > 0)
    .map(([number, name]) => `${count(number)} ${name}`)
    .join(", ");
}

interface RowProps {
  pool: string;
  drive: Drive;
  mirrored: boolean;
  onConfirm: (what: Confirmation) => void;
}

function DriveRow({ pool, drive, mirrored, onConfirm }: RowProps) {
  const admin = useMay("admin");
  const [replacing, setReplacing] = useState(false);
  const [returning, setReturning] = useState(false);
  const path = { pool };
  return (
    <li className="drive">
      <span className="spec" title={drive.spec}>
        {drive.spec}
      </span>
      <State of={drive.slow ? "slow" : drive.state} />
      <span className="about">
        {bytes(drive.size)}, {wear(drive)}
        {drive.synced_percent !== undefined &&
          drive.synced_percent !== null &&
          `, ${drive.synced_percent} % copied`}
      </span>
      <span className="warn">{[faults(drive), drive.why].filter(Boolean).join("; ")}</span>
      {drive.health && <DriveHealth of={drive.health} spec={drive.spec} />}
      <span className="actions">
        <HistoryButton object={`drive/${pool}/${drive.spec}`} title={drive.spec} />
        {admin && mirrored && (
          <>
            {drive.state === "online" ? (
              <button
                type="button"
                className="small"
                onClick={() =>
                  onConfirm({
                    title: "Take a drive offline",
                    what: `The mirror runs without ${drive.spec} until the drive is brought online.`,
                    name: pool,
                    action: "Take offline",
                    run: () =>
                      api.post("/v1/pools/{pool}/drives/offline", { path, body: { drive: drive.id } }),
                  })
                }
              >
                Offline
              </button>
            ) : (
              <button type="button" className="small" onClick={() => setReturning(true)}>
                Online
              </button>
            )}
            <button type="button" className="small" onClick={() => setReplacing(true)}>
              Replace
            </button>
          </>
        )}
      </span>
      {returning && <BringOnline pool={pool} drive={drive} onClose={() => setReturning(false)} />}
      {replacing && <ReplaceDrive pool={pool} drive={drive} onClose={() => setReplacing(false)} />}
    </li>
  );
}

interface Props {
  pool: string;
  vdrive: Vdrive;
  onConfirm: (what: Confirmation) => void;
}

export function VdriveCard({ pool, vdrive, onConfirm }: Props) {
  const admin = useMay("admin");
  return (
    <div className="vdrive">
      <header>
        <b>vdrive {vdrive.id}</b>
        <span className="about">{layoutText(vdrive)}</span>
        <State of={vdrive.state} />
        <span className="about">{percent(vdrive.used, vdrive.capacity).toFixed(0)} % full</span>
        <HistoryButton object={`vdrive/${pool}/${vdrive.id}`} title={`vdrive ${vdrive.id} of ${pool}`} />
        {admin && (
          <button
            type="button"
            className="small"
            onClick={() =>
              onConfirm({
                title: `Evacuate vdrive ${vdrive.id}`,
                what: `Its data is moved to the other vdrives; then it is removed from ${pool}.`,
                name: pool,
                action: "Evacuate vdrive",
                run: () =>
                  api.delete("/v1/pools/{pool}/vdrives/{vdrive}", {
                    path: { pool, vdrive: vdrive.id },
                  }),
              })
            }
          >
            Evacuate
          </button>
        )}
      </header>
      <ul>
        {vdrive.drives.map((drive) => (
          <DriveRow
            key={drive.id}
            pool={pool}
            drive={drive}
            mirrored={vdrive.layout.kind === "mirror"}
            onConfirm={onConfirm}
          />
        ))}
      </ul>
    </div>
  );
}
