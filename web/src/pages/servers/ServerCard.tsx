import type { Server } from "../../api/types";
import { bytes, count, many, percent, span, time } from "../../format";
import { href } from "../../router";
import { Bar } from "../../ui/Bar";
import { State } from "../../ui/State";
import { toneOf, totals, verdict } from "./servers";

interface Props {
  of: Server;
  /** Nothing where that may not be, or cannot. */
  onRemove?: (() => void) | undefined;
}

function Pools({ of }: { of: Server }) {
  return (
    <ul className="plain">
      {of.pools.map((pool) => (
        <li key={pool.name} className="pool-line">
          <b>{pool.name}</b> <State of={pool.state} />
          {pool.capacity > 0 && (
            <>
              <Bar
                label={`Space of ${pool.name}`}
                whole={pool.capacity}
                parts={[{ name: "used", value: Math.min(pool.used, pool.capacity), tone: "accent" }]}
              />
              <span className="about">
                {bytes(pool.used)} of {bytes(pool.capacity)}
                {pool.seconds_to_full !== undefined &&
                  pool.seconds_to_full !== null &&
                  `, full in ${span(pool.seconds_to_full)}`}
              </span>
            </>
          )}
        </li>
      ))}
    </ul>
  );
}

/** A daemon at a glance. */
export function ServerCard({ of, onRemove }: Props) {
  const own = of.name === "";
  const name = own ? "This server" : of.name;
  const sum = totals(of.pools);
  const known = of.answered_s !== undefined && of.answered_s !== null;
  return (
    <section className="card server" aria-label={name}>
      <header>
        <h2>
          {own ? (
            name
          ) : (
            <a href={of.url} rel="noreferrer">
              {name}
            </a>
          )}
        </h2>
        <span className={`state ${toneOf(of)}`}>
          <i aria-hidden="true" />
          {verdict(of)}
        </span>
      </header>
      {!own && <p className="about mono">{of.url}</p>}
      {of.error && (
        <p className="problem">
          {of.error}
          {known && ` Last known state, from ${time(of.answered_s!)}.`}
        </p>
      )}
      {known && (
        <>
          <div className="figures">
            <div>
              <b>{sum.capacity > 0 ? `${percent(sum.used, sum.capacity).toFixed(0)} %` : "–"}</b>
              <span>
                of {bytes(sum.capacity)} used
                {sum.secondsToFull !== undefined && `, full in ${span(sum.secondsToFull)}`}
              </span>
            </div>
            <div>
              <b>{sum.load ? count(sum.load.reads + sum.load.writes) : "–"}</b>
              <span>
                {sum.load
                  ? `IOPS, ${bytes(Math.round(sum.load.read_bytes + sum.load.write_bytes))}/s`
                  : "IOPS, soon"}
              </span>
            </div>
            <div>
              <b>{of.jobs_running}</b>
              <span>{of.jobs_running === 1 ? "job runs" : "jobs run"}</span>
            </div>
          </div>
          {of.alerts.length > 0 && (
            <ul className="plain" aria-label={`Alerts of ${name}`}>
              {of.alerts.map((alert) => (
                <li key={alert.message} className={alert.severity === "critical" ? "bad" : "warn"}>
                  {alert.message}
                </li>
              ))}
              {of.alerts_open > of.alerts.length && (
                <li className="about">and {many(of.alerts_open - of.alerts.length, "more alert")}</li>
              )}
            </ul>
          )}
          {of.pools.length === 0 ? <p className="about">No pools.</p> : <Pools of={of} />}
        </>
      )}
      <footer className="actions">
        <a className="button small" href={own ? href("") : of.url} rel="noreferrer">
          {own ? "Overview" : "Open its page"}
        </a>
        {onRemove && (
          <button type="button" className="small" aria-label={`Remove ${name}`} onClick={onRemove}>
            Remove
          </button>
        )}
      </footer>
    </section>
  );
}
