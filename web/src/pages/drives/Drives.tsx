import { useState } from "react";
import { api } from "../../api/client";
import { useData } from "../../live/useData";
import { useMay } from "../../session";
import { Page } from "../../ui/Page";
import type { AbsentPool } from "../../api/types";
import { Confirm } from "../../ui/Confirm";
import { CreatePool } from "./CreatePool";
import { ImportPool } from "./ImportPool";
import { PoolTopology } from "./PoolTopology";

/** A pool that should be open and is not: what is lacking, and a way out. */
function Absent({ pool, onImport }: { pool: AbsentPool; onImport: () => void }) {
  const admin = useMay("admin");
  const [forgetting, setForgetting] = useState(false);
  return (
    <div className="problem" role="alert">
      {pool.message}
      {admin && (
        <span className="actions">
          <button type="button" className="small" onClick={onImport}>
            Import {pool.name}
          </button>
          <button type="button" className="small" onClick={() => setForgetting(true)}>
            Forget {pool.name}
          </button>
        </span>
      )}
      {forgetting && (
        <Confirm
          of={{
            title: `Forget ${pool.name}`,
            what: "The daemon no longer tries to open the pool. The data on its drives is kept.",
            name: pool.name,
            action: "Forget pool",
            run: () => api.post("/v1/pools/{pool}/export", { path: { pool: pool.name } }),
          }}
          onClose={() => setForgetting(false)}
        />
      )}
    </div>
  );
}

/** Pools with their tiers, vdrives and drives. */
export function Drives() {
  const { value, error } = useData("pools", (signal) => api.get("/v1/pools", { signal }), 5);
  const admin = useMay("admin");
  const [making, setMaking] = useState(false);
  const [importing, setImporting] = useState<string[]>();
  return (
    <Page
      title="Tiers and drives"
      error={error}
      actions={
        admin && (
          <>
            <button type="button" onClick={() => setImporting([])}>
              Import a pool
            </button>
            <button type="button" className="primary" onClick={() => setMaking(true)}>
              New pool
            </button>
          </>
        )
      }
    >
      {value?.absent.map((pool) => (
        <Absent key={pool.id} pool={pool} onImport={() => setImporting(pool.drives)} />
      ))}
      {value && value.items.length === 0 && <p className="empty">No pools.</p>}
      {value?.items.map((pool) => (
        <PoolTopology key={pool.id} pool={pool} />
      ))}
      {importing && <ImportPool drives={importing} onClose={() => setImporting(undefined)} />}
      {making && <CreatePool onClose={() => setMaking(false)} />}
    </Page>
  );
}
