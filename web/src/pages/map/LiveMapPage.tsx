import { api } from "../../api/client";
import { useData } from "../../live/useData";
import { href } from "../../router";
import { Page } from "../../ui/Page";
import { Legend } from "./Legend";
import { PoolMap } from "./PoolMap";
import { VolumeMap } from "./VolumeMap";

interface Props {
  pool: string | undefined;
  volume: string | undefined;
}

/** Where everything lies, moving while one looks: all volumes, or one of them up close. */
export function LiveMapPage({ pool, volume }: Props) {
  const { value, error } = useData("volumes", (signal) => api.get("/v1/volumes", { signal }));
  const volumes = (value?.items ?? []).filter((known) => known.state === "online");
  const one = volumes.find((known) => known.pool === pool && known.name === volume);
  return (
    <Page
      title="Live map"
      error={error}
      about={
        one ? (
          <>
            <a href={href("map")}>All volumes</a> / {one.pool}/{one.name}
          </>
        ) : (
          "Each volume, from its first to its last block."
        )
      }
      actions={<Legend />}
    >
      {value && volumes.length === 0 && <p className="empty">No volumes.</p>}
      {one ? <VolumeMap key={`${one.pool}/${one.name}`} of={one} /> : <PoolMap volumes={volumes} />}
    </Page>
  );
}
