import { useState } from "react";
import { api } from "../../api/client";
import type { Volume } from "../../api/types";
import { bytes, count, milliseconds, percent } from "../../format";
import { IDLE } from "../../live/load";
import { useLiveValue } from "../../live/stream";
import { useData } from "../../live/useData";
import { go, href } from "../../router";
import { useMay } from "../../session";
import { Confirm, type Confirmation } from "../../ui/Confirm";
import { Facts } from "../../ui/Facts";
import { Card, Page } from "../../ui/Page";
import { State } from "../../ui/State";
import { ExportCard } from "../exports/ExportCard";
import { CreateExport } from "../exports/CreateExport";
import { SnapshotTable } from "../snapshots/SnapshotTable";
import { TakeSnapshot } from "../snapshots/TakeSnapshot";
import { ReceiveStream } from "../snapshots/ReceiveStream";
import { Knobs } from "./Knobs";
import { Promote } from "./Promote";
import { Resize } from "./Resize";
import { TierLatency } from "./TierLatency";
import { TopRanges } from "./TopRanges";
import { VolumeHistory } from "./VolumeHistory";
import { Why } from "./Why";
import { expectedOf } from "./knobs";

async function look(pool: string, volume: string, signal: AbortSignal) {
  const path = { pool, volume };
  const [shown, exports, snapshots] = await Promise.all([
    api.get("/v1/volumes/{pool}/{volume}", { path, signal }),
    api.get("/v1/exports", { query: { pool }, signal }),
    api.get("/v1/snapshots", { query: { pool, volume, wait_s: 0 }, signal }),
  ]);
  const own = exports.items.filter((known) => known.volume === volume);
  return { shown, exports: own, snapshots: snapshots.items };
}

function VolumeFacts({ of }: { of: Volume }) {
  return (
    <Facts
      of={[
        ["Size", bytes(of.size)],
        ["Written", `${bytes(of.mapped)}, ${percent(of.mapped, of.size).toFixed(1)} %`],
        ["Including snapshots", of.held !== undefined && of.held !== of.mapped && bytes(of.held)],
        ["On the fast tier", bytes(of.fast ?? 0)],
        ["Space", of.thick ? "thick" : "thin"],
        ["Quota", of.quota && bytes(of.quota)],
        ["Reserved", of.reservation && bytes(of.reservation)],
        ["Expected", expectedOf(of.targets)],
        ["Logical block", `${of.lba_size} bytes`],
        ["Serial", <code key="serial">{of.serial}</code>],
        ["Receiving", of.receiving && `${of.receiving.snapshot}: ${bytes(of.receiving.done)} so far`],
        ["Resume token", of.receiving && <code key="token">{of.receiving.token}</code>],
      ]}
    />
  );
}

function LoadFacts({ name }: { name: string }) {
  const load = useLiveValue((live) => live.volumes.get(name)?.load) ?? IDLE;
  return (
    <div className="figures">
      <div>
        <b>{count(load.readIops)}</b>
        <span>read IOPS, {bytes(Math.round(load.readBytes))}/s</span>
      </div>
      <div>
        <b>{count(load.writeIops)}</b>
        <span>write IOPS, {bytes(Math.round(load.writeBytes))}/s</span>
      </div>
      <div>
        <b>{milliseconds(load.readMs)}</b>
        <span>read latency; {milliseconds(load.writeMs)} write</span>
      </div>
    </div>
  );
}

/** A volume with everything that belongs to it. */
export function VolumePage({ pool, volume }: { pool: string; volume: string }) {
  const name = `${pool}/${volume}`;
  const { value, error } = useData(`volume ${name}`, (signal) => look(pool, volume, signal), 15);
  const operator = useMay("operator");
  const [confirm, setConfirm] = useState<Confirmation>();
  const [open, setOpen] = useState<"resize" | "export" | "snapshot" | "promote" | "receive" | "why">();
  const close = () => setOpen(undefined);

  function askToDelete() {
    setConfirm({
      title: `Delete ${name}`,
      what: `Volume ${name} and everything in it is lost.`,
      name,
      action: "Delete volume",
      run: async () => {
        await api.delete("/v1/volumes/{pool}/{volume}", { path: { pool, volume } });
        go("volumes");
      },
    });
  }

  return (
    <Page
      title={name}
      about={
        <>
          <a href={href("volumes")}>Volumes</a> {value && <State of={value.shown.state} />}
        </>
      }
      error={value ? undefined : error}
      actions={
        <>
          <a className="button" href={href("map", pool, volume)}>
            Live map
          </a>
          <button type="button" onClick={() => setOpen("why")}>
            Why is it slow?
          </button>
          {operator && (
            <>
              <button type="button" onClick={() => setOpen("resize")}>
                Resize
              </button>
              <button type="button" onClick={() => setOpen("promote")}>
                Promote
              </button>
              <button type="button" onClick={() => setOpen("receive")}>
                Receive
              </button>
              <button type="button" className="danger-quiet" onClick={askToDelete}>
                Delete
              </button>
            </>
          )}
        </>
      }
    >
      {value && (
        <>
          <div className="columns">
            <Card title="Volume">
              <VolumeFacts of={value.shown} />
            </Card>
            <Card title="Now">
              <LoadFacts name={name} />
            </Card>
          </div>
          <VolumeHistory name={name} />
          <div className="columns">
            <Card title="Latency by tier">
              <TierLatency pool={pool} volume={volume} />
            </Card>
            <Card title="Top ranges">
              <TopRanges pool={pool} volume={volume} />
            </Card>
          </div>
          <Card
            title="Exports"
            actions={
              operator && (
                <button type="button" className="small" onClick={() => setOpen("export")}>
                  New export
                </button>
              )
            }
          >
            {value.exports.length === 0 && <p className="empty">No exports yet.</p>}
            {value.exports.map((known) => (
              <ExportCard key={known.name} of={known} />
            ))}
          </Card>
          <Card
            title="Snapshots"
            actions={
              operator && (
                <button type="button" className="small" onClick={() => setOpen("snapshot")}>
                  New snapshot
                </button>
              )
            }
          >
            <SnapshotTable snapshots={value.snapshots} />
          </Card>
          {value.shown.placement && (
            <Card title="Settings">
              <Knobs
                key={JSON.stringify([value.shown.placement, value.shown.quota, value.shown.targets])}
                of={value.shown}
              />
            </Card>
          )}
          {open === "resize" && <Resize of={value.shown} onClose={close} />}
          {open === "promote" && <Promote of={value.shown} onClose={close} />}
          {open === "receive" && (
            <ReceiveStream pools={[pool]} volume={{ pool, name: volume }} onClose={close} />
          )}
          {open === "why" && <Why pool={pool} volume={volume} onClose={close} />}
          {open === "export" && <CreateExport volume={name} onClose={close} />}
          {open === "snapshot" && <TakeSnapshot pool={pool} volumes={[volume]} onClose={close} />}
        </>
      )}
      {confirm && <Confirm of={confirm} onClose={() => setConfirm(undefined)} />}
    </Page>
  );
}
