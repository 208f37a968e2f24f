import { useState } from "react";
import { api } from "../../api/client";
import { many } from "../../format";
import { useData } from "../../live/useData";
import { useMay } from "../../session";
import { Card, Page } from "../../ui/Page";
import { Schedules } from "./Schedules";
import { SetSchedule } from "./SetSchedule";
import { SnapshotTable } from "./SnapshotTable";

async function look(signal: AbortSignal) {
  const [snapshots, schedules, volumes] = await Promise.all([
    api.get("/v1/snapshots", { query: { wait_s: 0 }, signal }),
    api.get("/v1/schedules", { signal }),
    api.get("/v1/volumes", { signal }),
  ]);
  return { snapshots: snapshots.items, schedules: schedules.items, volumes: volumes.items };
}

export function Snapshots() {
  const { value, error } = useData("snapshots", look, 60);
  const operator = useMay("operator");
  const [setting, setSetting] = useState(false);
  const [find, setFind] = useState("");
  const wanted = find.toLowerCase();
  const shown = (value?.snapshots ?? []).filter((snapshot) =>
    `${snapshot.pool}/${snapshot.volume}@${snapshot.name}`.toLowerCase().includes(wanted),
  );
  return (
    <Page
      title="Snapshots"
      error={error}
      actions={
        <>
          <input
            type="search"
            aria-label="Find a snapshot"
            placeholder="Find"
            value={find}
            onChange={(event) => setFind(event.target.value)}
          />
          {operator && value && value.volumes.length > 0 && (
            <button type="button" className="primary" onClick={() => setSetting(true)}>
              New schedule
            </button>
          )}
        </>
      }
    >
      {value && (
        <>
          <Card title="Schedules">
            <Schedules schedules={value.schedules} />
          </Card>
          <Card title={many(shown.length, "snapshot")}>
            <SnapshotTable snapshots={shown} tree tall={20} />
          </Card>
        </>
      )}
      {setting && value && <SetSchedule volumes={value.volumes} onClose={() => setSetting(false)} />}
    </Page>
  );
}
