import { useState } from "react";
import { api } from "../../api/client";
import type { Pool } from "../../api/types";
import { bytes, parseBytes } from "../../format";
import { go } from "../../router";
import { Dialog } from "../../ui/Dialog";
import { CheckField, SelectField, TextField } from "../../ui/Field";
import { Form } from "../../ui/Form";

const LBA = [
  ["512", "512 bytes"],
  ["4096", "4,096 bytes"],
] as const;
const OFFERS = [
  ["vm", "a virtual machine on this host"],
  ["none", "nobody yet"],
] as const;

type Offer = (typeof OFFERS)[number][0];

/** Default socket path for the VMM. */
function socketOf(name: string): string {
  return `/run/convect/${name || "NAME"}.sock`;
}

/** A size that may be left out: null then, nothing when it cannot be read. */
function optional(text: string): number | null | undefined {
  return text.trim() === "" ? null : parseBytes(text);
}

export function CreateVolume({ pools, onClose }: { pools: Pool[]; onClose: () => void }) {
  const [name, setName] = useState("");
  const [pool, setPool] = useState(pools[0]!.name);
  const [size, setSize] = useState("100G");
  const [lba, setLba] = useState<"512" | "4096">("512");
  const [thick, setThick] = useState(false);
  const [quota, setQuota] = useState("");
  const [reservation, setReservation] = useState("");
  const [offer, setOffer] = useState<Offer>("vm");
  const [socket, setSocket] = useState<string>();
  const wanted = parseBytes(size);
  const [most, kept] = [optional(quota), optional(reservation)];

  async function make(bytesWanted: number) {
    const volume = await api.post("/v1/volumes", {
      body: {
        name,
        pool,
        size: bytesWanted,
        lba_size: Number(lba),
        thick,
        quota: most ?? null,
        reservation: kept ?? null,
      },
    });
    if (offer === "none") {
      onClose();
      go("volumes", pool, volume.name);
      return;
    }
    try {
      await api.post("/v1/exports", {
        body: {
          name,
          pool,
          volume: volume.name,
          kind: "vhost-user-blk",
          parameters: { path: socket ?? socketOf(name) },
        },
      });
    } catch (problem) {
      const why = problem instanceof Error ? problem.message : String(problem);
      throw new Error(`The volume was created, but not exported: ${why}`, { cause: problem });
    }
    onClose();
    go("exports", name);
  }

  return (
    <Dialog title="New volume" onClose={onClose}>
      <Form
        action="Create volume"
        disabled={name === "" || wanted === undefined || most === undefined || kept === undefined}
        onSubmit={async () => {
          if (wanted !== undefined) await make(wanted);
        }}
      >
        <TextField label="Name" value={name} onChange={setName} autoFocus />
        {pools.length > 1 && (
          <SelectField
            label="Pool"
            value={pool}
            options={pools.map((known) => [known.name, known.name] as const)}
            onChange={setPool}
          />
        )}
        <TextField
          label="Size"
          value={size}
          onChange={setSize}
          hint={
            wanted === undefined
              ? "For example 100G or 1.5T"
              : `${bytes(wanted)}; space is allocated on write`
          }
        />
        <SelectField label="Export to" value={offer} options={OFFERS} onChange={setOffer} />
        {offer === "vm" && (
          <TextField
            label="Socket for the virtual machine"
            value={socket ?? socketOf(name)}
            onChange={setSocket}
            className="mono"
          />
        )}
        <details>
          <summary>More</summary>
          <SelectField label="Logical block" value={lba} options={LBA} onChange={setLba} />
          <TextField
            label="Quota"
            value={quota}
            onChange={setQuota}
            placeholder="unlimited"
            hint="Maximum space of the volume and its snapshots"
          />
          <TextField
            label="Reservation"
            value={reservation}
            onChange={setReservation}
            placeholder="none"
            hint="Space guaranteed to the volume"
          />
          <CheckField label="Thick: reserve all space now" checked={thick} onChange={setThick} />
        </details>
      </Form>
    </Dialog>
  );
}
