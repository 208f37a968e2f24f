import { useState } from "react";
import { api } from "../../api/client";
import type { Pool } from "../../api/types";
import { bytes, parseBytes } from "../../format";
import { Dialog } from "../../ui/Dialog";
import { TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";
import { levels } from "./layouts";

/** A size that may be left out: 0 then, nothing when it is none. */
function sizeOr0(text: string): number | undefined {
  return text.trim() === "" ? 0 : parseBytes(text);
}

/** What can be chosen of a pool, and work on all of it. Each part is a form of its own. */
export function PoolSettings({ pool, onClose }: { pool: Pool; onClose: () => void }) {
  const path = { pool: pool.name };
  const daily = pool.promotion_budget?.daily;
  const [budget, setBudget] = useState(daily ? bytes(daily) : "");
  const [warn, setWarn] = useState((pool.warn_at ?? []).join(", "));
  const [rate, setRate] = useState("");
  const [done, setDone] = useState("");
  const [wanted, at, pace] = [sizeOr0(budget), levels(warn), sizeOr0(rate)];
  return (
    <Dialog title={`Settings of ${pool.name}`} onClose={onClose}>
      <Form
        action="Set the budget"
        disabled={wanted === undefined || wanted === (daily ?? 0)}
        onSubmit={async () => {
          await api.put("/v1/pools/{pool}", { path, body: { promotion_budget: wanted ?? null } });
          setDone("The budget is set.");
        }}
      >
        <TextField
          label="Promotion may write a day"
          value={budget}
          onChange={setBudget}
          placeholder="as much as is worth it"
          hint="Like 200G"
        />
      </Form>
      <Form
        action="Set the levels"
        disabled={at === undefined}
        onSubmit={async () => {
          await api.put("/v1/pools/{pool}/warnings", { path, body: { at: at ?? [] } });
          setDone("The levels are set.");
        }}
      >
        <TextField
          label="Warn when it is full to"
          value={warn}
          onChange={setWarn}
          placeholder="never"
          hint="Per cent, with commas between: 80, 90, 95"
        />
      </Form>
      <Form
        action="Scrub it"
        disabled={pool.scrub?.state === "running" || pace === undefined}
        onSubmit={async () => {
          await api.post("/v1/pools/{pool}/scrub", { path, body: { rate: pace || null } });
          setDone("The scrub began.");
        }}
      >
        <TextField
          label="Scrub, reading a second at most"
          value={rate}
          onChange={setRate}
          placeholder="as the configuration says"
        />
      </Form>
      <Form
        action="Cool it"
        onSubmit={async () => {
          await api.post("/v1/pools/{pool}/cool", { path });
          setDone("The fast tier has no copies now.");
        }}
      >
        <p>
          <b>Cool.</b> Everything is written back to its slow home, and all clean copies are forgotten: for
          measurements, and before the fast tier is taken away.
        </p>
      </Form>
      <p role="status" className="about">
        {done}
      </p>
    </Dialog>
  );
}
