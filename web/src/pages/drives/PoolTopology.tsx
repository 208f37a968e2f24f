import { useState } from "react";
import { api } from "../../api/client";
import type { Pool, Tier } from "../../api/types";
import { bytes, percent, span } from "../../format";
import { HistoryButton } from "../../history/HistoryButton";
import { useMay } from "../../session";
import { Bar } from "../../ui/Bar";
import { Confirm, type Confirmation } from "../../ui/Confirm";
import { Facts } from "../../ui/Facts";
import { State } from "../../ui/State";
import { AddVdrive } from "./AddVdrive";
import { Flow } from "./Flow";
import { Moves } from "./Moves";
import { PoolSettings } from "./PoolSettings";
import { VdriveCard } from "./VdriveCard";

const TIERS: readonly Tier[] = ["fast", "slow"];

function scrubText({ scrub }: Pool): string {
  if (!scrub || scrub.state === "never") return "never";
  if (scrub.state === "running" || scrub.state === "paused")
    return `${scrub.state}, ${percent(scrub.bytes, scrub.total).toFixed(0)} %`;
  return `${scrub.state}: ${scrub.errors} bad copies, ${scrub.repaired} repaired, ${scrub.lost} lost`;
}

function fills(pool: Pool): string {
  const parts = (pool.fills ?? []).map((fill) => {
    const left = fill.seconds_to_full;
    return `${fill.part} ${fill.percent} %${left ? ` (full in ${span(left)})` : ""}`;
  });
  return parts.join(", ");
}

interface ActionsProps {
  pool: Pool;
  onConfirm: (what: Confirmation) => void;
  onSettings: () => void;
}

/** Actions on a whole pool. */
function PoolActions({ pool, onConfirm, onSettings }: ActionsProps) {
  const operator = useMay("operator");
  const admin = useMay("admin");
  const path = { pool: pool.name };
  const scrubs = pool.scrub?.state === "running" || pool.scrub?.state === "paused";
  return (
    <div className="actions">
      {operator && (
        <>
          <button
            type="button"
            onClick={() =>
              void (scrubs
                ? api.delete("/v1/pools/{pool}/scrub", { path })
                : api.post("/v1/pools/{pool}/scrub", { path, body: {} }))
            }
          >
            {scrubs ? "Stop scrub" : "Scrub"}
          </button>
          <button
            type="button"
            aria-pressed={pool.promotion_held}
            onClick={() =>
              void api.put("/v1/pools/{pool}/hold-promotion", { path, body: { hold: !pool.promotion_held } })
            }
          >
            {pool.promotion_held ? "Resume promotion" : "Hold promotion"}
          </button>
          <button type="button" aria-label={`Settings of ${pool.name}`} onClick={onSettings}>
            Settings
          </button>
        </>
      )}
      {admin && (
        <>
          <button
            type="button"
            onClick={() =>
              onConfirm({
                title: `Export ${pool.name}`,
                what: "Its exports are stopped and its drives are released, so that another host can import it.",
                name: pool.name,
                action: "Export pool",
                run: () => api.post("/v1/pools/{pool}/export", { path }),
              })
            }
          >
            Export
          </button>
          <button
            type="button"
            className="danger-quiet"
            onClick={() =>
              onConfirm({
                title: `Destroy ${pool.name}`,
                what: "All volumes and snapshots in the pool are lost.",
                name: pool.name,
                action: "Destroy pool",
                run: () => api.delete("/v1/pools/{pool}", { path }),
              })
            }
          >
            Destroy
          </button>
        </>
      )}
    </div>
  );
}

export function PoolTopology({ pool }: { pool: Pool }) {
  const admin = useMay("admin");
  const [confirm, setConfirm] = useState<Confirmation>();
  const [adding, setAdding] = useState<Tier>();
  const [setting, setSetting] = useState(false);
  return (
    <section className="card topology" aria-label={`Pool ${pool.name}`}>
      <header>
        <h2>{pool.name}</h2>
        <State of={pool.state} />
        <HistoryButton object={`pool/${pool.name}`} title={`pool ${pool.name}`} />
        <PoolActions pool={pool} onConfirm={setConfirm} onSettings={() => setSetting(true)} />
      </header>
      {pool.messages.map((message) => (
        <p key={message} className="warn">
          {message}
        </p>
      ))}
      <Facts
        of={[
          ["Space", `${bytes(pool.used)} of ${bytes(pool.capacity)} used`],
          ["Provisioned", `${bytes(pool.promised ?? 0)}, ${pool.promised_percent ?? 0} %`],
          ["Fill", fills(pool)],
          [
            "RAM cache",
            <>
              {bytes(pool.ram_bytes)} of {bytes(pool.ram_limit ?? 0)}{" "}
              <HistoryButton object={`tier/${pool.name}/ram`} title={`RAM cache of ${pool.name}`} />
            </>,
          ],
          ["Scrub", scrubText(pool)],
        ]}
      />
      {TIERS.map((tier) => {
        const vdrives = pool.vdrives.filter((vdrive) => vdrive.tier === tier);
        const capacity = vdrives.reduce((sum, vdrive) => sum + vdrive.capacity, 0);
        const used = vdrives.reduce((sum, vdrive) => sum + vdrive.used, 0);
        return (
          <div key={tier} className={`tier ${tier}`}>
            <header>
              <h3>{tier === "fast" ? "Fast tier" : "Slow tier"}</h3>
              <span className="about">
                {vdrives.length === 0 ? "none" : `${bytes(used)} of ${bytes(capacity)}`}
              </span>
              {vdrives.length > 0 && (
                <HistoryButton object={`tier/${pool.name}/${tier}`} title={`${tier} tier of ${pool.name}`} />
              )}
              {admin && (
                <button type="button" className="small" onClick={() => setAdding(tier)}>
                  Add a vdrive
                </button>
              )}
            </header>
            {vdrives.length > 0 && (
              <Bar
                label={`Fill of the ${tier} tier of ${pool.name}`}
                whole={capacity}
                legend={tier === "fast"}
                parts={
                  tier === "fast"
                    ? [
                        { name: "dirty", value: pool.fast_dirty, tone: "fast" },
                        { name: "clean copies", value: pool.fast_shadow, tone: "shadow" },
                      ]
                    : [{ name: "used", value: used, tone: "slow" }]
                }
              />
            )}
            {vdrives.map((vdrive) => (
              <VdriveCard key={vdrive.id} pool={pool.name} vdrive={vdrive} onConfirm={setConfirm} />
            ))}
          </div>
        );
      })}
      <Flow pool={pool.name} />
      <Moves pool={pool.name} />
      {setting && <PoolSettings pool={pool} onClose={() => setSetting(false)} />}
      {adding && <AddVdrive pool={pool.name} tier={adding} onClose={() => setAdding(undefined)} />}
      {confirm && <Confirm of={confirm} onClose={() => setConfirm(undefined)} />}
    </section>
  );
}
