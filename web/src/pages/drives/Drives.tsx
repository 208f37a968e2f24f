import { useState } from "react";
import { api } from "../../api/client";
import { useData } from "../../live/useData";
import { useMay } from "../../session";
import { Page } from "../../ui/Page";
import { CreatePool } from "./CreatePool";
import { PoolTopology } from "./PoolTopology";

/** Pools with their tiers, vdrives and drives. */
export function Drives() {
  const { value, error } = useData("pools", (signal) => api.get("/v1/pools", { signal }), 5);
  const admin = useMay("admin");
  const [making, setMaking] = useState(false);
  return (
    <Page
      title="Tiers and drives"
      error={error}
      actions={
        admin && (
          <button type="button" className="primary" onClick={() => setMaking(true)}>
            New pool
          </button>
        )
      }
    >
      {value?.absent.map((pool) => (
        <p key={pool.id} className="problem" role="alert">
          {pool.message}
        </p>
      ))}
      {value && value.items.length === 0 && <p className="empty">There is no pool.</p>}
      {value?.items.map((pool) => (
        <PoolTopology key={pool.id} pool={pool} />
      ))}
      {making && <CreatePool onClose={() => setMaking(false)} />}
    </Page>
  );
}
