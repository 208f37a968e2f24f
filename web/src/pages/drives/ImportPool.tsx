import { useState } from "react";
import { api } from "../../api/client";
import type { Importable } from "../../api/types";
import { many } from "../../format";
import { CheckField, LinesField } from "../../ui/Field";
import { Dialog } from "../../ui/Dialog";
import { Form } from "../../ui/Form";
import { lines } from "./layouts";

interface FoundProps {
  pool: Importable;
  onDone: () => void;
}

/** A pool that was found, and what opens it. */
function Found({ pool, onDone }: FoundProps) {
  const [degraded, setDegraded] = useState(false);
  const [acceptOld, setAcceptOld] = useState(false);
  const lacks = pool.missing.length > 0;
  return (
    <section className="found" aria-label={`Pool ${pool.name}`}>
      <h3>{pool.name}</h3>
      <p className="about">
        {many(pool.found.length, "drive")} found{lacks && `; missing: ${pool.missing.join(", ")}`}
      </p>
      <Form
        action={`Import ${pool.name}`}
        disabled={lacks && !degraded}
        onSubmit={async () => {
          await api.post("/v1/pools/{pool}/import", {
            path: { pool: pool.id },
            body: { drives: pool.found, degraded, accept_old: acceptOld },
          });
          onDone();
        }}
      >
        {lacks && (
          <CheckField
            label="Open the pool with drives missing (degraded)"
            checked={degraded}
            onChange={setDegraded}
          />
        )}
        <CheckField
          label="Open the pool although drives were restored to an earlier state (later writes are lost)"
          checked={acceptOld}
          onChange={setAcceptOld}
        />
      </Form>
    </section>
  );
}

/** Looks for pools on drives, and opens one. */
export function ImportPool({ drives: known, onClose }: { drives: string[]; onClose: () => void }) {
  const [text, setText] = useState(known.join("\n"));
  const [found, setFound] = useState<Importable[]>();
  const drives = lines(text);
  return (
    <Dialog title="Import a pool" onClose={onClose}>
      <Form
        action="Find pools"
        onSubmit={async () => {
          const body = drives.length > 0 ? { drives } : { folders: ["/dev/disk/by-id"] };
          const { items } = await api.post("/v1/importable", { body });
          setFound(items);
        }}
      >
        <p>Open a pool that another host or this one has closed, from its drives.</p>
        <LinesField
          label="Drives, one per line; without any, /dev/disk/by-id is searched"
          value={text}
          onChange={setText}
          placeholder="/dev/nvme0n1"
        />
      </Form>
      {found?.length === 0 && <p className="empty">These drives contain no pool that can be opened.</p>}
      {found?.map((pool) => (
        <Found key={pool.id} pool={pool} onDone={onClose} />
      ))}
    </Dialog>
  );
}
